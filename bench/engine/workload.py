"""The prompts, as token ids: real English from the package's corpus, the same on every machine.

Each round has prompts of its own, so that what an engine keeps of one round does not help in the next.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MANY, ONE, PREFIX = "many", "one", "prefix"
CASES = (MANY, ONE, PREFIX)
SEED = 5
SOURCE = Path(__file__).parents[2] / "src/treadle/experiment/corpora/state_of_the_union.jsonl.gz"

Prompt = list[int]


@dataclass(frozen=True)
class Workload:
    """Prompts that are asked all at once, and how many tokens each is answered with, end or not."""

    prompts: list[Prompt]
    new: int

    @property
    def generated(self) -> int:
        """Tokens in all answers."""
        return len(self.prompts) * self.new


def english(encode: Callable[[str], Sequence[int]], characters: int = 200_000) -> Prompt:
    """The beginning of the corpus."""
    parts, size = [], 0
    with gzip.open(SOURCE, "rt", encoding="utf-8") as file:
        for line in file:
            parts.append(json.loads(line)["text"])
            size += len(parts[-1])
            if size > characters:
                break
    return list(encode("\n".join(parts)[:characters]))


def workload(case: str, ids: Prompt, at: int = 0, *, small: bool = False) -> Workload:
    """Round `at`: 64 requests of 16 to 256 tokens, 6,400 in all; or one; or 64 with one beginning of 512.

    `small` has a few short ones, to see whether an engine runs at all.
    """
    draw = random.Random(f"{SEED} {case} {at}")
    if case == ONE:
        return Workload([_cut(draw, ids, 24 if small else 128)], 6 if small else 128)
    if case == PREFIX:
        start, own, count, new = (64, 8, 3, 4) if small else (512, 32, 64, 32)
        beginning = _cut(draw, ids, start)
        return Workload([beginning + _cut(draw, ids, own) for _ in range(count)], new)
    lengths = [16, 24, 20] if small else _lengths(draw)
    return Workload([_cut(draw, ids, length) for length in lengths], 4 if small else 64)


def _lengths(draw: random.Random) -> list[int]:
    lengths = [draw.randint(16, 184) for _ in range(64)]
    lengths[0], lengths[1] = 16, 256
    while (missing := 6_400 - sum(lengths)) != 0:
        at = draw.randrange(2, 64)
        lengths[at] = min(256, max(16, lengths[at] + max(-8, min(8, missing))))
    return lengths


def _cut(draw: random.Random, ids: Prompt, length: int) -> Prompt:
    start = draw.randrange(len(ids) - length)
    return ids[start : start + length]
