"""Where each token stands, as the rotation that its queries and keys get (RoPE, Su et al. 2021)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.resource import PlansOnly
from treadle.engine.resources.step import ResourceStep, StepContext


@dataclass(frozen=True)
class Rotation:
    """For each token of the step: `cos` and `sin`, float32 (tokens, 1, width / 2), one for all heads."""

    cos: Tensor
    sin: Tensor

    def turn(self, vectors: Tensor) -> Tensor:
        """Rotate float32 (tokens, heads, width), pairing number i with number i + width / 2."""
        left, right = vectors.chunk(2, dim=-1)
        return torch.cat((left * self.cos - right * self.sin, right * self.cos + left * self.sin), dim=-1)


class Positions(PlansOnly[Rotation]):
    """Counts on from what the KV cache holds, so there is one count and not two.

    Args:
        context: positions that there are.
        width: of one head.
        base: of the rotation's wave lengths.
        kv: key of the KV cache.
        factors: what each frequency is divided by, one for each pair of numbers; none for an even rotation.
    """

    def __init__(
        self, context: int, width: int, base: float, kv: str = "kv", factors: Sequence[float] = ()
    ) -> None:
        self._kv = kv
        frequencies = 1.0 / base ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
        if factors:
            frequencies = frequencies / torch.tensor(factors)
        angles = torch.arange(context, dtype=torch.float32)[:, None, None] * frequencies
        self._cos, self._sin = angles.cos(), angles.sin()

    @property
    def depends_on(self) -> Collection[str]:
        """The KV cache knows how many tokens went before."""
        return (self._kv,)

    def plan_step(self, step: ResourceStep, ctx: StepContext) -> Rotation:
        """The rotation of every token of the batch."""
        rows = ctx.result(self._kv, KvPlan).rows
        places = [place for row in rows for place in range(row.start, row.start + row.span)]
        return self.rotation(torch.tensor(places, dtype=torch.int64))

    def rotation(self, places: Tensor) -> Rotation:
        """The rotation of tokens at these places, int (tokens,)."""
        return Rotation(self._cos[places], self._sin[places])
