"""One contender in this process: NAME ROUNDS CASE...; prints a line of JSON for each round of each case.

Loading counts from before the tool is imported. A short run comes first, for what is made at first use.
With the case `first` it only loads. `--small` stands before the rest.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

from bench.engine.contender import FIRST
from bench.engine.contenders import contender
from bench.engine.workload import Prompt, Workload, english, workload


class Tool(Protocol):
    """An engine that has loaded its weights."""

    def encode(self, text: str) -> Sequence[int]:
        """Ids of a text, nothing added."""

    def answer(self, prompts: list[Prompt], new: int) -> tuple[list[list[int]], list[float]]:
        """The new tokens of each, and when each had its first: `time.perf_counter`."""


def main() -> None:
    words = sys.argv[1:]
    small = words[0] == "--small"
    name, rounds, *cases = words[small:]
    began = time.perf_counter()
    tool = _load(name)
    loaded = time.perf_counter() - began
    if cases == [FIRST]:
        _tell(FIRST, load=loaded)
        return
    ids = english(tool.encode)
    tool.answer([ids[at : at + 8] for at in range(0, 24, 8)], 3)
    for case in cases:
        for at in range(int(rounds)):
            _tell(case, load=loaded, **_round(tool, workload(case, ids, at, small=small)))


def _load(name: str) -> Tool:
    chosen = contender(name)
    module = importlib.import_module(f"bench.engine.tools.{chosen.module}")
    tool: Tool = module.load(chosen.precision, **chosen.options)
    return tool


def _round(tool: Tool, work: Workload) -> dict[str, Any]:
    began = time.perf_counter()
    answers, firsts = tool.answer(work.prompts, work.new)
    seconds = time.perf_counter() - began
    if [len(each) for each in answers] != [work.new] * len(work.prompts):
        raise SystemExit(f"answers of {sorted({len(each) for each in answers})} tokens, not of {work.new}")
    return {
        "seconds": seconds,
        "first": sum(each - began for each in firsts) / len(firsts),
        "prompts": zlib.crc32(repr(work.prompts).encode()),
        "answers": answers,
    }


def _tell(part: str, **told: object) -> None:
    print(json.dumps({"part": part, **told}), flush=True)


if __name__ == "__main__":
    main()
