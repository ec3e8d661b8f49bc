"""One runner on a "machine" of its own: a process that no other takes for one of its machine.

    python machine.py STORE SEED SIZE NAME SLOWNESS

Runs a random graph of SIZE steps on an object store; ends with 0 when every step is done and gave what it
must. Each body leaves an object below STORE-ran, past the faults, at TREADLE_TEST_SERVER. The code of a step
meets an outage as an error, so the steps have a retry.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from uuid import uuid4

import fsspec

from treadle.artifacts import Artifact
from treadle.execution import Retry, StepRunner, StepSpec
from treadle.storage.ledger import process


def text(name: str) -> str:
    """What the file of a step holds."""
    return f"{name} " * 20


def witness() -> fsspec.AbstractFileSystem:
    """The store itself, past what fails."""
    return fsspec.filesystem("s3", endpoint_url=os.environ["TREADLE_TEST_SERVER"])


def steps(store: str, seed: int, size: int, slowness: float = 0.0) -> list[StepSpec]:
    """The graph of that seed: each step needs up to three before it."""
    chance = random.Random(seed)
    made: list[StepSpec] = []
    for place in range(size):
        deps = chance.sample(made, min(len(made), chance.randrange(4)))
        made.append(step(store, f"s{place:02}", deps, chance.random() * slowness))
    return made


def step(store: str, name: str, deps: list[StepSpec], seconds: float) -> StepSpec:
    """It reads what it needs, works for a while, writes a file and returns its name."""

    def body(path: str) -> Artifact:
        from treadle.artifacts import open_store

        for dep in deps:
            found = open_store(store).load_value(dep.output_path)
            with fsspec.open(f"{found.path}/out.txt") as file:
                assert file.read().decode() == text(dep.name)
        time.sleep(seconds)
        with fsspec.open(f"{path}/out.txt", "w") as file:
            file.write(text(name))
        witness().pipe_file(f"{store}-ran/{name}-{uuid4().hex}", b"x")
        return Artifact(path)

    return StepSpec(name, body, deps, output_path_prefix=store, retry=Retry(20, 0.5, max_delay=2, losses=20))


def main(store: str, seed: int, size: int, name: str, slowness: float) -> None:
    """Be that machine, and run the graph in an order of its own."""
    process._machine = lambda: name  # type: ignore[assignment]
    socket.gethostname = lambda: name
    made = steps(store, seed, size, slowness)
    results = StepRunner(4).run(random.Random(name).sample(made, len(made)))
    for each in made:
        with fsspec.open(f"{results[each.id].path}/out.txt") as file:
            assert file.read().decode() == text(each.name)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
