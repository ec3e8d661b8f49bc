"""A pass of a fixed shape, captured once and replayed: each row decodes one token.

What a step is made of stands in static buffers, and everything else is computed from these inside the pass:
so it does the same to the same memory each time, whatever the numbers are. On a CPU a replay is the same
call again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.models.llama import Llama
from treadle.engine.resources.attention import AttentionPlan, Gather, bias_behind
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import DecodeRows
from treadle.engine.resources.positions import Positions


@dataclass(frozen=True)
class CapturedPass:
    """The pass of `model` by torch, over static buffers; `positions` has its table of rotations."""

    model: Llama
    cache: PagedKvCache
    positions: Positions

    def __call__(self, tokens: Tensor, rows: DecodeRows) -> Tensor:
        """Float32 (rows, vocabulary) of int64 (rows,); fills the planned slots of the cache."""
        attention = AttentionPlan((self._gather(rows),))

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            self.cache.write(layer, keys, values, rows)
            return attention.attend(queries, *self.cache.layer(layer))

        rotation = self.positions.rotation(rows.starts)
        return self.model.scores(self.model.hidden(tokens, rotation.turn, attend))

    def _gather(self, rows: DecodeRows) -> Gather:
        count, pages = rows.table.shape
        store = self.cache.store
        buffer = (store.shape.heads, count * pages, store.page_size, store.shape.width)
        device = rows.table.device
        return Gather(
            tokens=torch.arange(count, device=device),
            pages=rows.table.flatten(),
            rows=count,
            bias=bias_behind(rows.starts[:, None], pages * store.page_size),
            buffers=(
                torch.empty(buffer, dtype=store.dtype, device=device),
                torch.empty(buffer, dtype=store.dtype, device=device),
            ),
        )
