"""Steps that look around, go wrong, die and hang; run by the tests in other processes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from pathlib import Path

from tests.execution.backends.experiment import trace
from treadle import Retry, Runtime, StepContext, run, step
from treadle.errors import StepsFailedError
from treadle.fray import JobRequest, Travelling, current_client, stop_requested

TENANT: Travelling[str] = Travelling("tenant of the tests")
PATIENCE = 60.0
"""Seconds; how long a body waits for what must come."""


def await_file(path: Path) -> None:
    late = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < late, f"{path} never came"
        time.sleep(0.01)


@step
def look_around(ctx: StepContext) -> dict[str, object]:
    client = current_client()
    asked = client.submit(JobRequest("ask", TENANT.get))
    return {
        "tenant": TENANT.get(),
        "of a job": asked.result(),
        "shares memory": client.shares_memory,
        "pid": os.getpid(),
        "folder": Path.cwd().name,
    }


@step
def talk(ctx: StepContext) -> int:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    logging.getLogger("bodies").warning("to the log")
    print("unfinished", end="")
    return 1


@step
def talk_and_fail() -> int:
    print("so far so good")
    raise ValueError("no further")


@step
def countdown(n: int, ctx: StepContext) -> int:
    """Runs that are as deep as `n`."""
    if n == 0:
        return 0
    handle = countdown(n - 1)
    return 1 + int(run(handle, prefix=ctx.prefix, max_concurrent=1)[handle.id])


@step
def ouroboros(ctx: StepContext) -> int:
    handle = ouroboros()
    return int(run(handle, prefix=ctx.prefix)[handle.id])


@step
def meet(name: str, other: str, folder: Runtime[str], ctx: StepContext) -> str:
    """Two of them run each other: each has begun before it runs the other one."""
    Path(folder, name).touch()
    await_file(Path(folder, other))
    handle = meet(other, name, folder)
    try:
        run(handle, prefix=ctx.prefix)
    except StepsFailedError as error:
        raise RuntimeError(f"{name}: {error.exceptions[0]}") from error
    return name


@step(retry=Retry(attempts=1, delay=0.01, losses=2))
def die(times: int, how: str, folder: Runtime[str]) -> int:
    tries = trace(folder, "die")
    if tries <= times:
        print(f"about to die for the {tries}. time")
        os._exit(9) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    return tries


@step(timeout=0.5)
def never_look(folder: Runtime[str]) -> None:
    trace(folder, f"never-look-{os.getpid()}")
    while True:
        time.sleep(0.05)


@step(timeout=0.5)
def swallow(folder: Runtime[str]) -> None:
    """Not even an interrupt ends it."""
    trace(folder, f"swallow-{os.getpid()}")
    while True:
        try:
            time.sleep(0.05)
        except KeyboardInterrupt:
            continue


@step
def fail(n: int, folder: Runtime[str]) -> None:
    """The first one at once, others when the end of a step was told."""
    trace(folder, f"fail-{n}")
    if len(list(Path(folder).iterdir())) > 1:
        await_file(Path(folder).parent / "seen")
    raise ValueError(n)


@step
def rest(n: int, seconds: float) -> int:
    time.sleep(seconds)
    return n


@step(timeout=0.5)
def give_half(folder: Runtime[str]) -> int:
    """Returns what it has when it is asked to stop."""
    trace(folder, "give_half")
    late = time.monotonic() + PATIENCE
    while not stop_requested():
        assert time.monotonic() < late
        time.sleep(0.01)
    return -1


@step(timeout=0.5)
def obey(folder: Runtime[str]) -> int:
    trace(folder, "obey")
    late = time.monotonic() + PATIENCE
    while not stop_requested():
        assert time.monotonic() < late
        time.sleep(0.01)
    raise InterruptedError("asked to stop")
