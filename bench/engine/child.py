"""One contender in this process: NAME CASE ROUNDS; prints a line of JSON for each round.

Loading counts from before the tool is imported. A short run comes first, for what is made at first use.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from bench.engine.contender import contender
from bench.engine.workload import Prompt, Workload, workload


class Tool(Protocol):
    """An engine that has loaded its weights."""

    def encode(self, text: str) -> Sequence[int]:
        """Ids of a text, nothing added."""

    def answer(self, prompts: list[Prompt], new: int) -> tuple[list[list[int]], list[float]]:
        """The new tokens of each, and when each had its first: `time.perf_counter`."""


def main() -> None:
    name, case, rounds = sys.argv[1:]
    chosen = contender(name)
    began = time.perf_counter()
    module = importlib.import_module(f"bench.engine.tools.{chosen.module}")
    tool: Tool = module.load(chosen.precision, **chosen.options)
    loaded = time.perf_counter() - began
    work = workload(case, tool.encode)
    tool.answer([prompt[-8:] for prompt in work.prompts[:3]], 3)
    for _ in range(int(rounds)):
        print(json.dumps({"load": loaded, **_round(tool, work)}), flush=True)


def _round(tool: Tool, work: Workload) -> dict[str, Any]:
    began = time.perf_counter()
    answers, firsts = tool.answer(work.prompts, work.new)
    seconds = time.perf_counter() - began
    if [len(each) for each in answers] != [work.new] * len(work.prompts):
        raise SystemExit(f"answers of {sorted({len(each) for each in answers})} tokens, not of {work.new}")
    return {
        "seconds": seconds,
        "first": sum(each - began for each in firsts) / len(firsts) if firsts else None,
        "peak": max(
            resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        / 1e3,
        "answers": answers,
    }


if __name__ == "__main__":
    main()
