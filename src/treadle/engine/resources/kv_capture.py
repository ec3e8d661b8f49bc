"""The static buffers of the KV cache: where a captured step of a fixed shape finds its slots and pages.

A capture notes addresses, so the numbers of each step are copied into the same memory, when it is the live
one: what is planned ahead has memory of its own until then, for the step before it may still be read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from treadle.engine.resources.kv_plan import DecodeRows, KvRow
from treadle.engine.resources.kv_store import KvStore
from treadle.errors import ArgumentError, EngineError


class KvCapture:
    """Buffers for decoding rows over the pages of `store`, which has the sink page of the padding rows.

    Args:
        store: the pages.
        window: how far back a token sees, where pages are given back; then nothing can be captured.
    """

    def __init__(self, store: KvStore, window: int | None) -> None:
        self._store = store
        self._capturable = store.sink is not None and window is None
        self._sizes = (0, 0, 0)  # sets of buffers, rows of each, pages of each row
        self._buffers: list[tuple[Tensor, Tensor, Tensor]] = []
        self._shapes: dict[tuple[int, int, int], DecodeRows] = {}

    def build(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        """See `Capturing`. When they grow, the rows of earlier steps are no longer those of later ones.

        Raises:
            ArgumentError: a number below 1, or a cache without a sink page, or with a window.
        """
        if min(slots, max_bs, max_seq_len) < 1:
            raise ArgumentError(
                f"buffers need 1 slot, row and token or more, got {slots}, {max_bs}, {max_seq_len}"
            )
        if not self._capturable:
            raise ArgumentError(
                "captured steps need a sink page and look at every token: "
                "build the cache without path and window"
            )
        asked = slots, max_bs, -(-max_seq_len // self._store.page_size)
        slots, rows, pages = (max(pair) for pair in zip(self._sizes, asked, strict=True))
        if (slots, rows, pages) != self._sizes:
            self._sizes = slots, rows, pages
            self._buffers = [_buffers(rows, pages) for _ in range(slots)]
            self._shapes.clear()

    def plan(self, rows: Sequence[KvRow]) -> DecodeRows:
        """A step in memory of its own; rows of no token are padding and decode into the sink page.

        The table is as wide as the longest row needs, or the next power of two: there are few shapes.

        Raises:
            EngineError: the buffers are too small, or a row has several tokens.
        """
        most_rows, most_pages = self._sizes[1:]
        longest = max((len(row.pages) for row in rows if row.span), default=1)
        if len(rows) > most_rows or longest > most_pages:
            raise self._lacking(f"{len(rows)} rows of up to {longest} pages")
        if long := [row.span for row in rows if row.span > 1]:
            raise EngineError(
                f"a captured step adds one token to a row, got {long[0]}: plan longer rows without a slot"
            )
        width = min(1 << (longest - 1).bit_length(), most_pages)
        return _planned(rows, width, self._store.page_size, self._store.pages)

    def place(self, slot: int, planned: DecodeRows) -> DecodeRows:
        """Copy a planned step into the buffers of a slot, and return the rows that lie there.

        Raises:
            EngineError: there are no such buffers.
        """
        if slot >= len(self._buffers):
            raise self._lacking(f"slot {slot}")
        rows = self._shape(slot, *planned.table.shape)
        rows.slots.copy_(planned.slots)
        rows.starts.copy_(planned.starts)
        rows.table.copy_(planned.table)
        return rows

    def _shape(self, slot: int, rows: int, width: int) -> DecodeRows:
        key = slot, rows, width
        if key not in self._shapes:
            slots, starts, table = self._buffers[slot]
            self._shapes[key] = DecodeRows(
                slots[:rows], starts[:rows], table[: rows * width].view(rows, width)
            )
        return self._shapes[key]

    def _lacking(self, what: str) -> EngineError:
        slots, rows, pages = self._sizes
        return EngineError(
            f"a captured step needs buffers for {what}; there are {slots} slots of {rows} rows of {pages} "
            "pages: call build_accelerator_graph_buffers before"
        )


def _buffers(rows: int, pages: int) -> tuple[Tensor, Tensor, Tensor]:
    """Slots, starts and page table of the largest step."""
    return (
        torch.zeros(rows, dtype=torch.int64),
        torch.zeros(rows, dtype=torch.int32),
        torch.zeros(rows * pages, dtype=torch.int32),
    )


def _planned(rows: Sequence[KvRow], width: int, size: int, sink: int) -> DecodeRows:
    slots = np.full(len(rows), sink * size, np.int64)
    starts = np.zeros(len(rows), np.int32)
    table = np.full((len(rows), width), sink, np.int32)
    for at, row in enumerate(rows):
        if row.span:
            slots[at] = row.pages[-1] * size + row.start % size
            starts[at] = row.start
            # Not filled up with the sink page, which may hold NaN: that is NaN at weight 0 as well.
            table[at] = row.pages[0]
            table[at, : len(row.pages)] = row.pages
    return DecodeRows(*(torch.from_numpy(each) for each in (slots, starts, table)))
