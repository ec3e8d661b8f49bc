"""What holds for all tests."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A busy machine is no error; a failing example prints how to reproduce it.
settings.register_profile("treadle", deadline=None, print_blob=True)
settings.load_profile("treadle")

# A script that starts the tests in its background hands down that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The URL of a bucket on a server of this machine; the environment leads clients to it."""
    # Here: few tests need them, and they take seconds to load.
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("treadle")
        yield "s3://treadle"
        server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a database on a PostgreSQL server of this machine, started for the tests."""
    # Here: few tests need it.
    from tests.db.server import running_server

    with running_server() as url:
        yield url


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """A Ray cluster of this machine, which all later clients of the session join.

    To start one takes seconds, and a process is connected to one at a time.
    """
    pytest.importorskip("ray", reason="the Ray backend is an extra")
    from treadle.fray import ResourceConfig
    from treadle.fray.ray import RayClient

    there = ResourceConfig(cpu=4, memory=1 << 30, tags={"licence": 2})
    with RayClient(resources=there, object_store_bytes=100 << 20):
        yield
