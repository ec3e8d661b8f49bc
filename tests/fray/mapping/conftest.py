"""The three places where a map can run, through one fixture."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from treadle.fray import Client, ThreadClient

MakeClient = Callable[..., Client]


def _process_client(workers: int, **options: Any) -> Any:
    from treadle.fray.processes import ProcessClient

    return ProcessClient(workers, **options)


def _ray_client(workers: int, **options: Any) -> Any:
    from treadle.fray.ray import RayClient

    return RayClient(max_workers=workers, **options)


MAKERS: dict[str, Callable[..., Any]] = {
    "threads": ThreadClient,
    "processes": _process_client,
    "ray": _ray_client,
}
REMOTE = ["processes", pytest.param("ray", marks=pytest.mark.slow)]


@pytest.fixture(params=["threads", *REMOTE])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of the place."""
    return str(request.param)


@pytest.fixture(params=REMOTE)
def remote(request: pytest.FixtureRequest) -> str:
    """The name of a place with other processes, which can be killed."""
    return str(request.param)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """One for the tests of a module, since starting it takes seconds: clients join it."""
    with _ray_client(4, object_store_bytes=100 << 20):
        yield


@pytest.fixture
def client_of(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """Makes clients, `client_of(backend, workers)`, which are shut down after the test."""
    with ExitStack() as stack:

        def make(backend: str, workers: int = 2, **options: Any) -> Client:
            if backend == "ray":
                request.getfixturevalue("ray_cluster")
            client: Client = stack.enter_context(MAKERS[backend](workers, **options))
            return client

        yield make


@pytest.fixture
def gauge_folder(tmp_path: Path) -> Path:
    """Where a gauge keeps its files."""
    folder = tmp_path / "gauge"
    folder.mkdir()
    return folder


@pytest.fixture
def gauge() -> Callable[[Path], Any]:
    """`gauge(folder)(name)` is a block that counts, over all processes, how many such blocks are open.

    Functions of a test go by value to other processes, modules of tests cannot be imported there.
    """

    def make(folder: Path) -> Any:
        @contextmanager
        def inside(name: str) -> Iterator[None]:
            mark = folder / f"{name}.in"
            mark.touch(exist_ok=False)
            (folder / f"seen={len(list(folder.glob('*.in')))}").touch()
            yield
            mark.unlink()

        return inside

    return make
