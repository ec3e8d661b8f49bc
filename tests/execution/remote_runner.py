"""A process that runs a small graph in the store `argv[1]`, and says when it is at work on step `argv[2]`.

It has written a file, and works on until it is told to go on. Each body leaves an object below `argv[1]-ran`.
"""

from __future__ import annotations

import sys
from uuid import uuid4

import fsspec

from treadle.execution import StepRunner, StepSpec, StepWaiting
from treadle.execution.report import Event

NAMES = ("a", "b", "c", "d", "e", "f")


def graph(prefix: str, held: str = "") -> list[StepSpec]:
    """`a`, four steps that need it, and `f`, which needs those."""
    first = step(prefix, "a", (), held)
    middle = [step(prefix, name, (first,), held) for name in "bcde"]
    return [first, *middle, step(prefix, "f", middle, held)]


def step(prefix: str, name: str, deps: tuple[StepSpec, ...] | list[StepSpec], held: str) -> StepSpec:
    """A step whose body leaves a trace, and waits if it is held."""

    def fn(path: str) -> str:
        with fsspec.open(f"{prefix}-ran/{name}-{uuid4().hex}", "w") as file:
            file.write(name)
        if name == held:
            with fsspec.open(f"{path}/half.txt", "w") as file:
                file.write("half")
            print("at work", flush=True)
            sys.stdin.readline()
        with fsspec.open(f"{path}/out.txt", "w") as file:
            file.write(name)
        return name

    return StepSpec(name, fn, deps, output_path_prefix=prefix)


def tell(event: Event) -> None:
    """Whoever started this process hears of it."""
    if isinstance(event, StepWaiting):
        print("waiting", flush=True)


if __name__ == "__main__":
    steps = graph(*sys.argv[1:])
    results = StepRunner(3, reporter=tell).run(steps)
    print("done", sorted(results[each.id] for each in steps), flush=True)
