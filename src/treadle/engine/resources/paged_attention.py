"""What each row may look at, as tables for compiled code that reads pages where they lie."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.resource import PlansOnly
from treadle.engine.resources.step import ResourceStep, StepContext
from treadle.errors import EngineError


@dataclass(frozen=True)
class PagedRows:
    """Rows of the batch, int32 each: token i of a row looks at positions 0 .. start + i.

    Attributes:
        first: (rows,), where the row's tokens begin in the batch.
        spans: (rows,), how many they are.
        starts: (rows,), how many are stored before them.
        pages: (rows, longest), padded.
    """

    first: Tensor
    spans: Tensor
    starts: Tensor
    pages: Tensor


class PagedAttention(PlansOnly[PagedRows]):
    """Plans from the pages that the KV cache under key `kv` planned."""

    def __init__(self, kv: str = "kv") -> None:
        self._kv = kv

    @property
    def depends_on(self) -> Collection[str]:
        """The KV cache knows the pages."""
        return (self._kv,)

    def plan_step(self, step: ResourceStep, ctx: StepContext) -> PagedRows:
        """The tables of all rows; made once for all layers.

        Raises:
            EngineError: pages in front of a row were given back.
        """
        plan = ctx.result(self._kv, KvPlan)
        if any(row.gone for row in plan.rows):
            raise EngineError(
                "PagedAttention looks at every token, and the cache gave pages back: build it without window"
            )
        spans = [row.span for row in plan.rows]
        first = [end - span for end, span in zip(accumulate(spans), spans, strict=True)]
        numbers = torch.tensor([first, spans, [row.start for row in plan.rows]], dtype=torch.int32)
        return PagedRows(numbers[0], numbers[1], numbers[2], plan.table)
