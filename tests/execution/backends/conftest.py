"""The places where steps run. Each is started once; what a test breaks there is its own worker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from treadle.fray import Client, ThreadClient

BACKENDS = ("threads", "processes", "ray")
WORKERS = 4


def make(backend: str) -> Client:
    if backend == "threads":
        return ThreadClient(WORKERS)
    if backend == "processes":
        from treadle.fray.processes import ProcessClient

        return ProcessClient(WORKERS)
    from treadle.fray.ray import RayClient

    return RayClient(max_workers=WORKERS, grace=1.0)


@pytest.fixture(scope="package")
def client_of(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Client]]:
    """The client of a backend, by its name."""
    made: dict[str, Client] = {}

    def get(backend: str) -> Client:
        if backend not in made:
            if backend == "ray":
                request.getfixturevalue("ray_cluster")
            made[backend] = make(backend)
        return made[backend]

    yield get
    for each in made.values():
        each.shutdown()


@pytest.fixture(params=BACKENDS)
def client(request: pytest.FixtureRequest, client_of: Callable[[str], Client]) -> Client:
    return client_of(request.param)


@pytest.fixture(params=BACKENDS[1:])
def elsewhere(request: pytest.FixtureRequest, client_of: Callable[[str], Client]) -> Client:
    """A client whose jobs run in other processes."""
    return client_of(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where bodies leave traces."""
    made = tmp_path / "traces"
    made.mkdir()
    return made
