"""Picks the next token of each request from the model's scores. A step names the rows that need one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from treadle.engine.resources.resource import PlansOnly
from treadle.engine.resources.sampling import Pick, Sampling, reported
from treadle.engine.resources.step import ResourceStep, StepContext
from treadle.errors import EngineError


@dataclass(slots=True)
class Voice:
    """One request's wish, and what its picks depend on.

    Attributes:
        wish: how its tokens are picked.
        picked: how many steps that pick a token committed.
        seen: tokens that a repetition penalty weighs down; empty when there is none.
    """

    wish: Sampling
    picked: int
    seen: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class SamplePlan:
    """For each row of the step, whose it is, and how many tokens were picked for it before."""

    voices: tuple[Voice, ...]
    picked: tuple[int, ...]

    def sample(self, scores: Tensor) -> tuple[Pick | None, ...]:
        """The next token of each row of `scores`, float (rows, vocabulary); once, for a committed step.

        Rows do not see each other. None stands for a row whose scores are not numbers, or hold an
        infinite one; a score of minus infinity is a token that cannot be.
        """
        picks = []
        rows = zip(self.voices, self.picked, _likeliest(scores), strict=True)
        for row, (voice, picked, token) in enumerate(rows):
            if token is not None and not voice.wish.likeliest:
                token = voice.wish.pick(scores[row].float(), voice.seen, picked)
            if token is not None and voice.wish.repetition_penalty != 1:
                voice.seen.add(token)
            picks.append(None if token is None else reported(token, scores[row], voice.wish.logprobs))
        return tuple(picks)


class Sampler(PlansOnly[SamplePlan]):
    """Keeps how each request wants its tokens picked, and how many were."""

    def __init__(self) -> None:
        self._voices: dict[str, Voice] = {}

    def ingest(self, rid: str, overrides: object | None) -> None:
        """Open a request, with a `Sampling` or greedy.

        Raises:
            EngineError: the override is something else.
        """
        if overrides is not None and not isinstance(overrides, Sampling):
            raise EngineError(f"the sampler takes a Sampling, got {type(overrides).__name__}")
        wish = overrides or Sampling()
        self._voices[rid] = Voice(
            wish, wish.picked, set(wish.past) if wish.repetition_penalty != 1 else set()
        )

    def plan_step(self, step: ResourceStep, ctx: StepContext) -> SamplePlan:
        """The voices of the rows that the step names, in their order.

        Raises:
            EngineError: a row's request is not open.
        """
        voices = tuple(self._voice(segment.request_id) for segment in step.rows)
        return SamplePlan(voices, tuple(voice.picked for voice in voices))

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """The draws of the step are used: the next ones are others."""
        for segment in step.rows:
            self._voice(segment.request_id).picked += 1

    def remove(self, rid: str) -> None:
        """Forget how the request picks."""
        self._voices.pop(rid, None)

    def _voice(self, rid: str) -> Voice:
        if rid not in self._voices:
            raise EngineError(f"request {rid!r} is not open in the sampler: ingest it before a step names it")
        return self._voices[rid]


def _likeliest(scores: Tensor) -> Sequence[int | None]:
    """The token of the best score of each row, None where that is no finite number."""
    if scores.device.type == "cpu":
        # On a CPU torch finds a place ten times slower than numpy; both stop at the first NaN.
        tokens = torch.from_numpy(scores.float().numpy().argmax(axis=-1))
    else:
        tokens = scores.argmax(dim=-1)
    best = scores.gather(-1, tokens[:, None])[:, 0]
    return [
        token if math.isfinite(value) else None
        for token, value in zip(tokens.tolist(), best.tolist(), strict=True)
    ]
