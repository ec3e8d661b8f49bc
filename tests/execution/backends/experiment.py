"""An experiment with a bit of everything, to be run anywhere; each body leaves a trace of having run."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle import Artifact, Retry, Runtime, StepContext, StepSpec, run, step
from treadle.execution import Handle
from treadle.fray import ResourceConfig, current_client

CHAIN, FAN = 200, 60


def trace(folder: str, name: str) -> int:
    """Leave a line in the file of that name, and say how many it has."""
    file = os.open(Path(folder, name), os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{os.getpid()}\n".encode())
        return os.lseek(file, 0, os.SEEK_END) and len(Path(folder, name).read_text().split())
    finally:
        os.close(file)


def traces(folder: Path) -> dict[str, int]:
    """How often each body has run."""
    return {each.name: len(each.read_text().split()) for each in sorted(folder.iterdir())}


class ShardError(Exception):
    """One whose `__init__` takes other arguments than it passes on."""

    def __init__(self, shard: int, *, path: str) -> None:
        super().__init__(f"shard {shard} of {path}")
        self.shard = shard


@dataclass(frozen=True)
class FrozenError(Exception):
    """One that takes no attributes."""

    shard: int

    def __str__(self) -> str:
        return f"frozen shard {self.shard}"


class LockedError(ValueError):
    """One that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


@dataclass(frozen=True)
class Corpus(Artifact):
    """A typed artifact."""

    words: int


@step
def corpus(n: int, traces: Runtime[str], ctx: StepContext) -> Corpus:
    trace(traces, "corpus")
    for shard in range(n):
        Path(ctx.output_path, f"shard-{shard}.txt").write_text(f"word-{shard} " * shard)
    print(f"wrote {n} shards")
    return Corpus(ctx.output_path, sum(range(n)))


@step(resources=ResourceConfig(cpu=1, memory=1 << 20))
def count(source: Corpus, traces: Runtime[str]) -> dict[str, Any]:
    trace(traces, "count")
    texts = [each.read_text() for each in sorted(Path(source.path).iterdir())]
    return {"words": sum(len(text.split()) for text in texts), "stated": source.words, "parts": (1, [2])}


@step
def link(before: int, n: int, traces: Runtime[str]) -> int:
    if n % 50 == 0:
        trace(traces, f"link-{n}")
    return before + n


@step
def leaf(n: int, traces: Runtime[str]) -> int:
    if n % 20 == 0:
        trace(traces, f"leaf-{n}")
    return n


@step
def total(parts: list[int], more: dict[str, Any], traces: Runtime[str]) -> int:
    trace(traces, "total")
    return sum(parts) + int(more["words"])


@step(retry=Retry(attempts=3, delay=0.01, on=LockedError))
def flaky(traces: Runtime[str]) -> str:
    tries = trace(traces, "flaky")
    if tries < 3:
        raise LockedError(f"try {tries}")
    return "at last"


@step
def broken(shard: int, kind: str, traces: Runtime[str]) -> int:
    trace(traces, f"broken-{kind}")
    match kind:
        case "plain":
            raise ValueError(f"no shard {shard}")
        case "own":
            raise ShardError(shard, path="corpus")
        case "frozen":
            raise FrozenError(shard)
        case "group":
            raise ExceptionGroup("two", [FrozenError(1), ShardError(2, path="x")])
        case _:
            raise SystemExit(shard)


@step
def after(value: int, traces: Runtime[str]) -> int:
    trace(traces, "after")
    return value


@step
def inner(n: int, traces: Runtime[str]) -> int:
    trace(traces, f"inner-{n}")
    return n * n


@step
def nested(n: int, traces: Runtime[str], ctx: StepContext) -> list[int]:
    trace(traces, "nested")
    handles = [inner(each, traces) for each in range(n)]
    results = run(*handles, prefix=ctx.prefix, max_concurrent=1)
    assert current_client().max_workers >= 1
    return [results[each.id] for each in handles]


KINDS = ("plain", "own", "frozen", "group", "exit")


def build(folder: str) -> list[Handle[Any]]:
    """All of it; `folder` is where the traces are left."""
    words = count(corpus(5, folder), folder)
    chain: Handle[int] = link(0, 0, folder)
    for n in range(1, CHAIN):
        chain = link(chain, n, folder)
    fan = total([leaf(n, folder) for n in range(FAN)], words, folder)
    fails = [after(broken(3, kind, folder), folder) for kind in KINDS]
    return [fan, chain, flaky(folder), nested(3, folder), *fails]


def by_hand(store: str, folder: str) -> list[StepSpec]:
    """Explicit specs, whose functions are closures that capture their dependencies."""

    def fill(name: str, *deps: StepSpec) -> StepSpec:
        def fn(path: str) -> int:
            trace(folder, name)
            size = sum(len(Path(dep.output_path, "out.txt").read_text()) for dep in deps)
            Path(path, "out.txt").write_text(name * (size + 1))
            return size

        return StepSpec(name, fn, deps, output_path_prefix=store)

    a = fill("a")
    b, c = fill("b", a), fill("c", a)
    return [fill("d", b, c)]
