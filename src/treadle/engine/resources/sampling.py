"""How one request wants its tokens picked, and the picking from one row of scores.

A row is looked at by itself and chance is a function of the seed and of how many tokens were picked
before, so a request gets the same tokens alone, among others, and after it was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from treadle.errors import ArgumentError

# What is likely stands among so many tokens; only a flat row must be sorted whole.
_NARROW = 1024
_WORD = 2**64 - 1


@dataclass(frozen=True)
class Sampling:
    """Override at ingest. Applied in the order of transformers: penalty, temperature, top k, top p, min p.

    Attributes:
        temperature: 0 takes the likeliest token; above it, tokens are drawn.
        seed: what the draws start from.
        top_k: draw among so many of the likeliest, and those as likely as the last; 0: among all.
        top_p: draw among the fewest likeliest tokens that have this chance together.
        min_p: draw among tokens at least so likely as this share of the likeliest one's chance.
        repetition_penalty: divides scores above 0, and multiplies those below, of tokens seen before.
        logprobs: None for none, or how many of the likeliest tokens to report beside the picked one.
        past: tokens seen before: the prompt's, and those picked before an interruption.
        picked: how many tokens were picked before an interruption.

    Raises:
        ArgumentError: a value out of range.
    """

    temperature: float = 0.0
    seed: int = 0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    logprobs: int | None = None
    past: tuple[int, ...] = ()
    picked: int = 0

    def __post_init__(self) -> None:
        for name, holds, expected in (
            ("temperature", 0 <= self.temperature < math.inf, "0 or more and finite"),
            ("top_k", self.top_k >= 0, "0 (all) or more"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", 0 <= self.min_p <= 1, "from 0 to 1"),
            ("repetition_penalty", 0 < self.repetition_penalty < math.inf, "above 0 and finite"),
            ("logprobs", (self.logprobs or 0) >= 0, "None, 0 or more"),
            ("picked", self.picked >= 0, "0 or more"),
        ):
            if not holds:
                raise ArgumentError(f"{name} must be {expected}, got {getattr(self, name)!r}")

    @property
    def likeliest(self) -> bool:
        """Whether the best score of the row is the token, whatever was seen or drawn before."""
        return self.temperature == 0 and self.repetition_penalty == 1

    def pick(self, scores: Tensor, seen: Collection[int], picked: int) -> int | None:
        """A token from float32 (vocabulary,), by what was seen and how many were picked; None: no numbers."""
        scores = _penalised(scores, seen, self.repetition_penalty)
        best, token = scores.max(dim=0)
        if not torch.isfinite(best):
            return None
        if self.temperature == 0:
            return int(token)
        return self._draw(scores - best, chance(self.seed, picked))

    def _draw(self, below: Tensor, at: float) -> int:
        # Within these bounds no quotient is a NaN; beyond them nothing changes.
        weights, tokens = self._among(below / min(max(self.temperature, 1e-30), 1e30))
        sums = weights.cumsum(0, dtype=torch.float64)
        # To the right: the first sum above the point, so a weight of 0 is never drawn.
        place = int(torch.searchsorted(sums, sums[-1:] * at, right=True))
        return place if tokens is None else int(tokens[place])

    def _among(self, below: Tensor) -> tuple[Tensor, Tensor | None]:
        """Weights (the likeliest has 1) of the tokens that stay, and which tokens, None for all."""
        tokens = None
        if 0 < self.top_k < len(below):
            tokens = (below >= below.topk(self.top_k).values[-1]).nonzero()[:, 0]
            below = below[tokens]
        weights = below.exp()
        if self.top_p < 1:
            weights, kept = _nucleus(weights, self.top_p)
            tokens = kept if tokens is None else tokens[kept]
        return weights * (weights >= self.min_p), tokens


class Pick(NamedTuple):
    """A token, and its log probability and that of the likeliest tokens when they were asked for."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


def reported(token: int, scores: Tensor, count: int | None) -> Pick:
    """The pick, with logs of the model's own chances: before penalty, temperature and filters.

    These are the `raw_logprobs` of vLLM, and log_softmax of the `logits` of transformers, in float32.
    """
    if count is None:
        return Pick(token)
    logs = torch.log_softmax(scores.float(), dim=-1)
    top = logs.topk(min(count, len(logs)))
    return Pick(token, float(logs[token]), tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True)))


def chance(seed: int, index: int) -> float:
    """Number `index` of a seed's row, even in [0, 1) in steps of 2**-52 (SplitMix64, Steele et al. 2014)."""
    return (_mixed(_mixed(seed) + index * 0x9E3779B97F4A7C15) >> 12) * 2.0**-52


def _mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def _penalised(scores: Tensor, seen: Collection[int], penalty: float) -> Tensor:
    if penalty == 1 or not seen:
        return scores
    tokens = torch.tensor(sorted(seen), dtype=torch.int64, device=scores.device)
    old = scores[tokens]
    return scores.index_copy(0, tokens, torch.where(old < 0, old * penalty, old / penalty))


def _nucleus(weights: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """The likeliest weights, best first, until the ones before have `share` of all; and their places."""
    enough = float(weights.sum(dtype=torch.float64)) * share
    for width in (_NARROW, len(weights)):
        top, places = weights.topk(min(width, len(weights)))
        before = top.cumsum(0, dtype=torch.float64) - top
        kept = int((before < enough).sum())
        if kept < len(top):
            break
    return top[:kept], places[:kept]
