"""Where the tokens of a step go in the KV cache, and over which pages each row looks."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KvRow:
    """One segment as the cache sees it: `span` tokens after `start` stored ones, over `pages`.

    Attributes:
        start: tokens stored before, those of pages that were given back too.
        span: new tokens.
        pages: from the first that is still there, to that of the last new token.
        gone: pages that were given back in front of them; 0 without a window.
    """

    start: int
    span: int
    pages: Sequence[int]
    gone: int = 0


@dataclass(frozen=True, eq=False)
class DecodeRows:
    """A step of a fixed shape, in buffers that every step of that shape uses: one new token for each row.

    The rows of requests come first. A padding row stores its token in the sink page and looks at that alone.

    Attributes:
        slots: int64 (rows,), where each new token goes: page * page_size + place in the page.
        starts: int32 (rows,), tokens stored before it, which is its position.
        table: int32 (rows, pages), the pages of each row; a shorter one ends in copies of its own first page.
    """

    slots: Tensor
    starts: Tensor
    table: Tensor


@dataclass(frozen=True)
class KvPlan:
    """The step as the cache sees it.

    Attributes:
        slots: int64 (tokens,), where each new token goes: page * page_size + place in the page.
        rows: in the order of the segments.
        page_size: tokens of a page.
    """

    slots: Tensor
    rows: tuple[KvRow, ...]
    page_size: int

    @classmethod
    def of(cls, rows: Sequence[KvRow], page_size: int) -> KvPlan:
        """The plan of these rows."""
        return cls(torch.from_numpy(_slots(rows, page_size)), tuple(rows), page_size)

    @cached_property
    def table(self) -> Tensor:
        """int32 (rows, longest): the pages of each row; a shorter one ends in copies of its own first page.

        A row without a page has zeros. Position p of a row stands in column p // page_size - gone.
        """
        longest = max((len(row.pages) for row in self.rows), default=0)
        table = array("i")  # joined as it lies: an array of numpy for each row costs five times as much
        for row in self.rows:
            table.extend(row.pages)
            table.extend([row.pages[0] if row.pages else 0] * (longest - len(row.pages)))
        return torch.from_numpy(np.array(table, np.int32).reshape(len(self.rows), longest))

    @cached_property
    def lengths(self) -> Tensor:
        """int32 (rows,): tokens of each row with the new ones."""
        return torch.tensor([row.start + row.span for row in self.rows], dtype=torch.int32)


def _slots(rows: Sequence[KvRow], size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Vectorised over all tokens: a long prompt has thousands, a decoding step one in each of many rows."""
    tails = array("i")  # of each row, the pages that get new tokens
    spans, shifts, done = [], [], 0
    for row in rows:
        first = row.start // size
        # Token t of the step has place t + shift among the slots of all tails.
        shifts.append(len(tails) * size + row.start - first * size - done)
        tails.extend(row.pages[first - row.gone :] if row.span else ())
        spans.append(row.span)
        done += row.span
    places = np.arange(done) + np.repeat(shifts, spans).astype(np.int64)
    return np.asarray(tails, np.int64)[places // size] * size + places % size
