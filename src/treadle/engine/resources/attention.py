"""What each token may look at, and the looking itself.

Rows of one token (decode) are attended to together: their pages are gathered side by side, padded
to the longest. Rows of several tokens (prefill) go one by one. Both read the pages of the KV cache,
into which the step's own keys and values were written before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from treadle.engine.resources.kv_plan import KvPlan, KvRow
from treadle.engine.resources.resource import PlansOnly
from treadle.engine.resources.step import ResourceStep, StepContext


@dataclass(frozen=True)
class Gather:
    """Rows that are attended to in one call, each over the same number of (padded) positions.

    Attributes:
        tokens: int64 (rows * span,), where the rows' tokens stand in the batch.
        pages: int64 (rows * pages a row,).
        rows: how many.
        bias: float32 (rows, 1, span, positions): 0 to look, minus infinity not to.
        buffers: keys and values, (heads, rows * pages a row, page_size, width) each, used by one
            layer after the other: fresh memory for every layer cost more than the gather itself.
    """

    tokens: Tensor
    pages: Tensor
    rows: int
    bias: Tensor
    buffers: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class AttentionPlan:
    """The calls to make, which cover every token of the batch once."""

    gathers: tuple[Gather, ...]

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Softmax attention, scaled by the root of the width; several queries share a key head (GQA).

        Args:
            queries: float32 (tokens, query heads, width).
            keys: (heads, pages, page_size, width), a layer of the cache.
            values: the same.

        Returns:
            float32 (tokens, query heads, width)
        """
        mixed = torch.empty_like(queries)
        for gather in self.gathers:
            mixed[gather.tokens] = _attend(gather, queries[gather.tokens], keys, values)
        return mixed


def bias_behind(last: Tensor, positions: int) -> Tensor:
    """float32 (rows, 1, span, positions), minus infinity behind the `last` position that a token looks at.

    `last` is int (rows, span).
    """
    hidden = torch.arange(positions, device=last.device) > last[:, None, :, None]
    return torch.zeros(hidden.shape, device=last.device).masked_fill_(hidden, float("-inf"))


class Attention(PlansOnly[AttentionPlan]):
    """Plans from the pages that the KV cache planned.

    Args:
        heads: key heads.
        width: of one head.
        kv: key of the KV cache.
        dtype: of its numbers.
    """

    def __init__(self, heads: int, width: int, kv: str = "kv", dtype: torch.dtype = torch.float32) -> None:
        self._dtype = dtype
        self._heads = heads
        self._width = width
        self._kv = kv

    @property
    def depends_on(self) -> Collection[str]:
        """The KV cache knows the pages."""
        return (self._kv,)

    def plan_step(self, step: ResourceStep, ctx: StepContext) -> AttentionPlan:
        """One gather for all rows of one token, and one for each longer row."""
        plan = ctx.result(self._kv, KvPlan)
        placed = list(zip(_starts(plan.rows), plan.rows, strict=True))
        single = [each for each in placed if each[1].span == 1]
        groups = [single] * bool(single) + [[each] for each in placed if each[1].span > 1]
        return AttentionPlan(tuple(self._gather(group, plan.page_size) for group in groups))

    def _gather(self, group: Sequence[tuple[int, KvRow]], page_size: int) -> Gather:
        rows = [row for _, row in group]
        longest = max(len(row.pages) for row in rows)
        padded = [page for row in rows for page in [*row.pages, *[row.pages[0]] * (longest - len(row.pages))]]
        buffer = (self._heads, len(padded), page_size, self._width)
        return Gather(
            tokens=torch.cat([torch.arange(start, start + row.span) for start, row in group]),
            pages=torch.tensor(padded, dtype=torch.int64),
            rows=len(rows),
            bias=bias_behind(_last_seen(rows), longest * page_size),
            buffers=(torch.empty(buffer, dtype=self._dtype), torch.empty(buffer, dtype=self._dtype)),
        )


def _starts(rows: Sequence[KvRow]) -> list[int]:
    starts, total = [], 0
    for row in rows:
        starts.append(total)
        total += row.span
    return starts


def _last_seen(rows: Sequence[KvRow]) -> Tensor:
    """int64 (rows, span): each token looks as far as itself."""
    return torch.stack([torch.arange(row.start, row.start + row.span) for row in rows])


def _attend(gather: Gather, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    width = keys.shape[-1]
    shape = (keys.shape[0], gather.rows, -1, width)
    wide_keys, wide_values = (
        torch.index_select(source, 1, gather.pages, out=buffer).view(shape).transpose(0, 1)
        for source, buffer in zip((keys, values), gather.buffers, strict=True)
    )
    count, query_heads = len(queries), queries.shape[1]
    asked = queries.view(gather.rows, count // gather.rows, query_heads, width).transpose(1, 2)
    mixed = scaled_dot_product_attention(
        asked.to(keys.dtype), wide_keys, wide_values, attn_mask=gather.bias.to(keys.dtype), enable_gqa=True
    )
    return mixed.transpose(1, 2).reshape(count, query_heads, width).to(queries.dtype)
