"""A PostgreSQL server of this machine: a fresh cluster in a temporary folder, on loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OWNER = "postgres"


@contextmanager
def running_server() -> Iterator[str]:
    """The URL of its database; skips where PostgreSQL is not installed."""
    binaries = _binaries()
    # Not below pytest's own folder, which only its user may enter, and the server refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="treadle-postgres-"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, OWNER)
        port = _free_port()
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
        )
        data = str(folder / "data")
        _run(
            binaries / "initdb",
            "-D",
            data,
            "-U",
            OWNER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        )
        _run(binaries / "pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://{OWNER}@127.0.0.1:{port}/postgres"
        finally:
            _run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed: make servers")
    return found[-1].parent


def _run(program: Path, *arguments: str) -> None:
    user = OWNER if os.getuid() == 0 else None
    done = subprocess.run(
        [program, *arguments],
        user=user,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, f"{program.name} {' '.join(arguments)} ended with {done.returncode}"


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
