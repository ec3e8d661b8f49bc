"""The memory behind the KV cache: keys and values of every layer, page by page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.resources.kv_plan import DecodeRows, KvPlan
from treadle.errors import ArgumentError


@dataclass(frozen=True)
class KvShape:
    """What one token leaves behind: keys and values of `heads` x `width` numbers in each layer."""

    layers: int
    heads: int
    width: int

    def bytes_of(self, tokens: int, dtype: torch.dtype) -> int:
        """How many bytes so many tokens take."""
        return tokens * self.layers * 2 * self.heads * self.width * dtype.itemsize


class KvStore:
    """`pages` pages of `page_size` tokens, allocated once.

    Args:
        shape: of a token.
        pages: how many.
        page_size: tokens of a page.
        dtype: of the numbers.
        path: a file that other processes map too, made here or there; None: memory of this process.
        sink: one page more behind them, for what nobody reads. A file has none: it is the pages alone.

    Raises:
        ArgumentError: a sink in a file.
    """

    def __init__(
        self,
        shape: KvShape,
        pages: int,
        page_size: int,
        dtype: torch.dtype,
        path: str | None = None,
        *,
        sink: bool = False,
    ) -> None:
        if sink and path is not None:
            raise ArgumentError(f"a file holds the pages of a cache and no sink page, got {path!r} with one")
        self.shape = shape
        self.pages = pages
        self.page_size = page_size
        self.path = path
        self.sink = pages if sink else None
        sizes = (shape.layers, 2, shape.heads, pages + sink, page_size, shape.width)
        # Not zeros: memory that no page has used yet is not taken from the machine.
        self._store = (
            torch.empty(sizes, dtype=dtype)
            if path is None
            else torch.from_file(path, shared=True, size=math.prod(sizes), dtype=dtype).view(sizes)
        )
        self._slots = self._store.flatten(3, 4)
        if self.sink is not None:
            self.blank([self.sink])  # numbers that happen to be tiny would make padding rows slow

    @property
    def dtype(self) -> torch.dtype:
        """Of the numbers."""
        return self._store.dtype

    @property
    def numbers(self) -> Tensor:
        """All of it, (layers, 2, heads, pages, page_size, width), the sink page last; not a copy."""
        return self._store

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer, each (heads, pages, page_size, width), as `numbers`; not a copy."""
        keys, values = self._store[index]
        return keys, values

    def write(self, index: int, keys: Tensor, values: Tensor, plan: KvPlan | DecodeRows) -> None:
        """Put the step's keys and values, (tokens, heads, width), into the planned slots."""
        for place, new in enumerate((keys, values)):
            self._slots[index, place].index_copy_(1, plan.slots, new.transpose(0, 1).to(self.dtype))

    def blank(self, pages: Sequence[int]) -> None:
        """Fill pages with zeros."""
        # The end of a page is read before it is written, at weight 0: a NaN there would make all of it NaN.
        for page in pages:  # one by one: a list of places costs ten times as much
            self._store[:, :, :, page].zero_()

    def copy(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Fill pages with what others hold: (from, to)."""
        for source, target in pairs:
            self._store[:, :, :, target] = self._store[:, :, :, source]

    def read(self, pages: Sequence[int]) -> Tensor:
        """A copy of pages, (layers, 2, heads, count, page_size, width)."""
        return self._store[:, :, :, list(pages)]

    def fill(self, pages: Sequence[int], content: Tensor) -> None:
        """Fill pages with what `read` gave."""
        self._store[:, :, :, list(pages)] = content
