"""Picks the next token of each request from the model's scores, alone or drawn with its own seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.resources.resource import ReservesNothing
from treadle.engine.resources.step import ResourceStep, StepContext
from treadle.errors import EngineError


@dataclass(frozen=True)
class Sampling:
    """Override at ingest: temperature 0 takes the likeliest token, above it tokens are drawn."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Draw:
    """How one row draws: its temperature and its own source of chance."""

    temperature: float
    generator: torch.Generator


@dataclass(frozen=True)
class SamplePlan:
    """For each row of the step, its draw, or None to take the likeliest token."""

    draws: tuple[Draw | None, ...]

    def sample(self, scores: Tensor) -> tuple[int | None, ...]:
        """The next token of each row of `scores`, float32 (rows, vocabulary).

        Each row is drawn by itself, so that its tokens do not depend on its batch mates. None stands
        for a row whose scores are not numbers.
        """
        best, tokens = scores.max(dim=-1)
        picked: list[int | None] = []
        for row, draw in enumerate(self.draws):
            if not torch.isfinite(best[row]):
                picked.append(None)
            elif draw is None:
                picked.append(int(tokens[row]))
            else:
                picked.append(_draw(scores[row], draw))
        return tuple(picked)


class Sampler(ReservesNothing):
    """Keeps how each request wants its tokens picked. A step names the rows that need a token."""

    def __init__(self) -> None:
        self._draws: dict[str, Draw | None] = {}

    def ingest(self, rid: str, overrides: object | None) -> None:
        """Open a request, with a `Sampling` or greedy.

        Raises:
            EngineError: the override is something else.
        """
        if overrides is not None and not isinstance(overrides, Sampling):
            raise EngineError(f"the sampler takes a Sampling, got {type(overrides).__name__}")
        # Made before it is kept: a seed that torch refuses leaves nothing behind.
        draw = None
        if overrides and overrides.temperature > 0:
            draw = Draw(overrides.temperature, torch.Generator().manual_seed(overrides.seed))
        self._draws[rid] = draw

    def plan(self, step: ResourceStep, ctx: StepContext) -> SamplePlan:
        """The draws of the rows that the step names, in their order.

        Raises:
            EngineError: a row's request is not open.
        """
        return SamplePlan(tuple(self._draw_of(segment.request_id) for segment in step.rows))

    def remove(self, rid: str) -> None:
        """Forget how the request picks."""
        self._draws.pop(rid, None)

    def _draw_of(self, rid: str) -> Draw | None:
        if rid not in self._draws:
            raise EngineError(f"request {rid!r} is not open in the sampler: ingest it before a step names it")
        return self._draws[rid]


def _draw(scores: Tensor, draw: Draw) -> int:
    # From the best score down, in float64: a tiny temperature then gives 0 and minus infinity, never NaN.
    below = scores.double() - scores.max()
    chances = torch.softmax(below / draw.temperature, dim=-1)
    return int(torch.multinomial(chances, 1, generator=draw.generator))
