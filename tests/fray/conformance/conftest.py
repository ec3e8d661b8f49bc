"""What every client promises, tested on every backend: `client` is one of each.

The bodies of jobs go by value, since other processes cannot import the tests. Where processes have to
meet they do so by files.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import cloudpickle
import pytest

from treadle.fray import Client, ResourceConfig, ThreadClient

cloudpickle.register_pickle_by_value(sys.modules[__name__])

BACKENDS = ("threads", "processes", "ray")
REMOTE = ("processes", "ray")

THERE = ResourceConfig(cpu=4, memory=1 << 30, tags={"licence": 2})
"""What the clients of these tests have, and `ray_cluster`; no machine needs to."""

LIMIT_S = 60.0
"""After this a test is said to hang, in seconds."""


class Open(Protocol):
    """Opens a client of the same backend, which is shut down after the test."""

    def __call__(self, max_workers: int = 4, **options: Any) -> Client: ...


def wait_until(condition: Callable[[], bool]) -> None:
    """Block until it holds; there is no event that all processes could wait at."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for has not come")
        time.sleep(0.005)


def wait_for(path: Path) -> None:
    """Block until the file is there."""
    wait_until(path.exists)


def note(path: Path, text: str) -> None:
    """Append a line in one act."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def noted(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def opened(backend: str, max_workers: int, **options: Any) -> Client:
    if backend == "threads":
        return ThreadClient(max_workers, resources=THERE, **options)
    if backend == "processes":
        from treadle.fray.processes import ProcessClient

        return ProcessClient(max_workers, resources=THERE, **options)
    from treadle.fray.ray import RayClient

    return RayClient(max_workers=max_workers, **{"grace": 1.0, **options})


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def client(backend: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of four workers; it is still in order when a test is over."""
    if backend == "ray":
        request.getfixturevalue("ray_cluster")
    made = opened(backend, 4)
    yield made
    made.shutdown()


@pytest.fixture
def open_client(backend: str, client: Client) -> Iterator[Open]:
    """Opens more clients beside `client`."""
    with ExitStack() as stack:

        def another(max_workers: int = 4, **options: Any) -> Client:
            made = opened(backend, max_workers, **options)
            stack.callback(made.shutdown)
            return made

        yield another


elsewhere = pytest.mark.parametrize("backend", REMOTE, indirect=True)
"""For tests of what only holds where jobs have processes of their own."""

in_this_machine = pytest.mark.parametrize("backend", ["threads", "processes"], indirect=True)
"""For tests of what a cluster decides by itself: how large it is, and which job that waits goes first."""

here = pytest.mark.parametrize("backend", ["threads"], indirect=True)
"""For tests of what only holds where jobs share the memory."""
