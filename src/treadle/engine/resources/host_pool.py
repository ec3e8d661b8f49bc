"""Where the pages of a request wait while others need the room: a pool of the same kind, out of the way."""

from __future__ import annotations

from array import array

import torch
from torch import Tensor

from treadle.engine.resources.kv_store import KvShape, KvStore
from treadle.engine.resources.page_pool import PagePool


class HostPool:
    """Room for `pages` pages, which is taken from the machine when it is first used.

    Args:
        shape: of a token.
        pages: how many; at least one.
        page_size: tokens of a page.
        dtype: of the numbers.

    Raises:
        ArgumentError: a pool without a page.
    """

    def __init__(self, shape: KvShape, pages: int, page_size: int, dtype: torch.dtype) -> None:
        self._pool = PagePool(pages)
        self._store = KvStore(shape, pages, page_size, dtype)
        self._pages: dict[str, array[int]] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing waits here."""
        return not self._pages

    def has_room(self, count: int) -> bool:
        """Whether so many pages can wait here."""
        return count <= self._pool.available

    def put(self, rid: str, content: Tensor, count: int) -> None:
        """Keep what `KvStore.read` gave of so many pages; only after `has_room`."""
        self._pages[rid] = self._pool.take(count)
        self._store.fill(self._pages[rid], content)

    def take(self, rid: str) -> Tensor:
        """Give back what was kept, in order, and keep it no longer."""
        content = self._store.read(self._pages[rid])
        self.drop(rid)
        return content

    def drop(self, rid: str) -> None:
        """Keep nothing of a request. Safe for one that is not here."""
        self._pool.drop(self._pages.pop(rid, array("i")))

    def check_integrity(self) -> None:
        """Raise EngineError naming the sum that does not hold."""
        self._pool.check_integrity(page for pages in self._pages.values() for page in pages)
