"""What the runner takes of a step in which 16 requests decode, and what the forward pass leaves to others.

Everything is measured in one run of the engine: the runner and the node are replaced by ones that note when
each of their methods began and ended. After each step the snapshots for publication are taken too; that time
is not counted as part of the step.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import torch

from bench.engine.threads import THREADS
from bench.engine.workload import english
from treadle.engine import Engine, GenerationRequest
from treadle.engine.node import Node

ROWS, PROMPT, NEW = 16, 128, 96
_VERBS = ("admit", "plan", "commit")
_AHEAD = ("pre_admit", "pre_plan")
_PRECISIONS = {"float32": "float32", "bf16": "bfloat16", "int8": "int8"}


class Mark(NamedTuple):
    """One call: seconds on the clock, and whether the thread of the engine made it."""

    verb: str
    began: float
    ended: float
    on_path: bool
    rows: int


class Clock:
    """Notes calls."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._path = threading.get_ident()

    def timed(self, verb: str, call: Callable[..., Any], rows: int = 0) -> Callable[..., Any]:
        """The call, which is noted."""

        def noted(*given: Any) -> Any:
            began = perf_counter()
            try:
                return call(*given)
            finally:
                on_path = threading.get_ident() == self._path
                self.marks.append(Mark(verb, began, perf_counter(), on_path, rows))

        return noted


class ClockedRunner:
    """A runner whose verbs of a step are noted."""

    def __init__(self, runner: Any, clock: Clock) -> None:
        self._runner = runner
        for verb in (*_VERBS, *_AHEAD):
            setattr(self, verb, clock.timed(verb, getattr(runner, verb)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)


@dataclass(frozen=True)
class ClockedNode(Node):
    """A node whose pass is noted, and that takes snapshots after each step."""

    clock: Clock = None  # type: ignore[assignment]

    def forward(self, step: Any, rows: Sequence[Any]) -> torch.Tensor:
        decoding = len(rows) if all(row.span == 1 for row in rows) else 0
        return self.clock.timed("forward", super().forward, decoding)(step, rows)  # type: ignore[no-any-return]

    def sample(self, step: Any, scores: torch.Tensor) -> Any:
        return self.clock.timed("sample", super().sample)(step, scores)

    def extend(self, rows: Sequence[Any], picks: Sequence[Any]) -> None:
        super().extend(rows, picks)
        requests = [row.generation.rid for row in rows]
        self.clock.timed("snapshot", self.runner.publish_snapshot)(requests, self.name, "generate")


def main() -> None:
    """Medians over the steps, in µs and as shares of the step."""
    small, name = sys.argv[1] == "--small", sys.argv[-1]
    clock = Clock()
    engine = _engine(name, clock)
    new = 20 if small else NEW
    for _ in engine.stream(_requests(engine, new)):
        pass
    steps = list(_steps(clock.marks))[2:]
    told = {key: statistics.median(each[key] for each in steps) for key in steps[0]}
    print(json.dumps({"part": "runner", "steps": len(steps), **told}))


def _engine(name: str, clock: Clock) -> Engine:
    precision, _, ahead = name.partition(", ")
    options: dict[str, Any] = {"plan_ahead": True} if ahead else {}
    loaded = Engine.load(
        "smollm2-135m-instruct",
        max_batch=ROWS,
        threads=THREADS,
        precision=_PRECISIONS[precision],  # type: ignore[arg-type]
        **options,
    )
    parts = {each.name: getattr(loaded.node, each.name) for each in fields(Node)}
    node = ClockedNode(**{**parts, "runner": ClockedRunner(loaded.node.runner, clock)}, clock=clock)
    return Engine(node, loaded.tokenizer, max_batch=ROWS, **options)


def _requests(engine: Engine, new: int) -> Iterator[GenerationRequest]:
    ids = english(engine.tokenizer.encode, 40_000)
    for at in range(ROWS):
        prompt = tuple(ids[at * PROMPT : (at + 1) * PROMPT])
        yield GenerationRequest(str(at), prompt, new, ignore_eos=True)


def _steps(marks: Sequence[Mark]) -> Iterator[dict[str, float]]:
    """Each from the end of one pass to the end of the next, when both are of 16 rows that decode."""
    passes = [each for each in marks if each.verb == "forward"]
    for before, this in pairwise(passes):
        if before.rows == this.rows == ROWS:
            yield _step([each for each in marks if before.ended < each.ended <= this.ended], before, this)


def _step(marks: Sequence[Mark], before: Mark, this: Mark) -> dict[str, float]:
    def of(*verbs: str) -> float:
        return sum(each.ended - each.began for each in marks if each.verb in verbs)

    step = this.ended - before.ended - of("snapshot")
    own, pass_ = of(*_VERBS), of("forward")
    found = {
        "step": step,
        **{verb: of(verb) for verb in _VERBS},
        "own": own,
        "snapshot": of("snapshot"),
        "ahead": of(*_AHEAD),
        "sample": of("sample"),
        "rest": step - pass_ - own - of("sample"),
    }
    shares = {f"{key}_share": found[key] / step for key in ("own", "snapshot", "sample", "rest")}
    return {key: value * 1e6 for key, value in found.items()} | shares | {"pass_share": pass_ / step}


if __name__ == "__main__":
    main()
