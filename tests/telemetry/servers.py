"""A Prometheus and a push gateway of this machine, on loopback, for one test."""

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

import pytest

T = TypeVar("T")
START_SECONDS = 15.0


def fetch(url: str) -> str:
    """What the server answers, past any proxy."""
    with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
        return cast("bytes", answer.read()).decode()


def wait_for(look: Callable[[], T | None], what: str, seconds: float = START_SECONDS) -> T:
    """What `look` gives once that is not None."""
    pause = threading.Event()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        pause.wait(0.05)
    pytest.fail(f"{what}: nothing within {seconds:g} seconds")


def binary(name: str) -> str:
    """The program; skips where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: make servers")
    return found


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def running(program: str, log: Path, url: str, *arguments: str) -> Iterator[None]:
    """The server, from when it says that it is ready at `url` until the block is left."""
    with log.open("wb") as output:
        server = subprocess.Popen([program, *arguments], stdout=output, stderr=output, cwd=log.parent)
    try:
        wait_for(lambda: _ready(server, url, log), program)
        yield
    finally:
        server.kill()
        server.wait()


@contextmanager
def push_gateway(folder: Path) -> Iterator[str]:
    """The URL of a push gateway."""
    program, port = binary("prometheus-pushgateway"), free_port()
    url = f"http://127.0.0.1:{port}"
    with running(program, folder / "gateway.log", url, f"--web.listen-address=127.0.0.1:{port}"):
        yield url


@contextmanager
def prometheus(folder: Path, **targets: str) -> Iterator[str]:
    """The URL of a Prometheus that asks each of `targets`, HOST:PORT by the name of the job, all the time."""
    program, port = binary("prometheus"), free_port()
    url = f"http://127.0.0.1:{port}"
    jobs = [
        {"job_name": job, "honor_labels": True, "static_configs": [{"targets": [target]}]}
        for job, target in targets.items()
    ]
    config = folder / "prometheus.yml"  # JSON is YAML as well
    config.write_text(json.dumps({"global": {"scrape_interval": "200ms"}, "scrape_configs": jobs}))
    options = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(program, folder / "prometheus.log", url, *options):
        yield url


def query(url: str, expression: str) -> list[tuple[dict[str, str], float]]:
    """The instant vector that a Prometheus answers: labels and value of each series."""
    answer = json.loads(fetch(f"{url}/api/v1/query?query={quote(expression)}"))
    return [(each["metric"], float(each["value"][1])) for each in answer["data"]["result"]]


def _ready(server: subprocess.Popen[bytes], url: str, log: Path) -> bool | None:
    if server.poll() is not None:
        pytest.fail(f"{server.args!r} ended with {server.returncode}:\n{log.read_text()}")
    try:
        fetch(f"{url}/-/ready")
    except URLError:
        return None
    return True
