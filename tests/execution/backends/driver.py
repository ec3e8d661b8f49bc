"""A run in a process of its own, to be interrupted or killed.

    python driver.py STORE FOLDER BACKEND [ADDRESS]

Runs as many steps as FOLDER/steps says, some of which wait for others. Each body leaves a line in the file of
its step when it begins, and waits for the file FOLDER/go if there is FOLDER/wait. With FOLDER/deaf no
interrupt ends it; it makes FOLDER/asked when it was asked to stop.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from treadle import Retry, Runtime, run, step
from treadle.execution import Handle
from treadle.fray import Client, ThreadClient, stop_requested

PATIENCE = 120.0


def begun(folder: str, name: str) -> None:
    file = os.open(Path(folder, "begun", name), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{os.getpid()}\n".encode())
    os.close(file)


def await_go(folder: str) -> None:
    late = time.monotonic() + PATIENCE
    while Path(folder, "wait").exists() and not Path(folder, "go").exists():
        assert time.monotonic() < late
        if stop_requested():
            Path(folder, "asked").touch()
        time.sleep(0.01)


@step(retry=Retry(attempts=1, delay=0.05, losses=50))
def work(n: int, before: list[int], folder: Runtime[str]) -> int:
    """Fills its folder in two halves, so that one that was torn apart is seen."""
    begun(folder, f"work-{n}")
    print(f"work {n}")
    while True:
        try:
            await_go(folder)
            break
        except KeyboardInterrupt:
            if not Path(folder, "deaf").exists():
                raise
    time.sleep(random.random() * 0.05)
    return n + sum(before)


def build(folder: str) -> list[Handle[int]]:
    count = int(Path(folder, "steps").read_text())
    handles: list[Handle[int]] = []
    for n in range(count):
        handles.append(work(n, handles[-7:-4], folder))
    return handles


def client_of(backend: str, address: str | None) -> Client:
    if backend == "threads":
        return ThreadClient(4)
    if backend == "processes":
        from treadle.fray.processes import ProcessClient

        return ProcessClient(4)
    from treadle.fray.ray import RayClient

    return RayClient(address)


def main(store: str, folder: str, backend: str, address: str | None = None) -> None:
    client = client_of(backend, address)
    Path(folder, "ready").touch()
    handles = build(folder)
    results = run(*handles, prefix=store, fray_client=client, max_concurrent=4)
    client.shutdown()
    print("sum", sum(results[each.id] for each in handles))


if __name__ == "__main__":
    # As a module, so that its steps are the same ones whoever runs them.
    from tests.execution.backends import driver

    driver.main(*sys.argv[1:])
