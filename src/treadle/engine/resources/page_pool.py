"""Which pages are free, and how many own each of the others. No tensors, and no requests, here.

A page that the prefix index alone owns is *idle*: nobody needs it, and it comes free when it is needed
for something else. The free list is a stack: pages given back in reverse stand as they stood before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from zlib import crc32

from treadle.errors import ArgumentError, EngineError


def no_idle_page(count: int) -> None:
    """For a pool that no index has a part in."""


class PagePool:
    """Accounts for the pages 0 .. `total` - 1.

    Args:
        total: how many pages there are; at least one.
        evict: lets go of so many idle pages, called when fewer are free than are taken.

    Raises:
        ArgumentError: a pool without a page.
    """

    def __init__(self, total: int, evict: Callable[[int], None] = no_idle_page) -> None:
        if total < 1:
            raise ArgumentError(f"a pool needs at least one page, got {total}")
        self.total = total
        self.evict = evict
        self._free = list(range(total - 1, -1, -1))
        self._owners = [0] * total
        self._indexed: set[int] = set()
        self._idle = 0
        self._moves, self._digest = 0, 0

    @property
    def free(self) -> tuple[int, ...]:
        """The free pages, the next one to be taken last."""
        return tuple(self._free)

    @property
    def available(self) -> int:
        """Pages that can be taken: the free and the idle ones."""
        return len(self._free) + self._idle

    @property
    def trail(self) -> tuple[int, int]:
        """How many pages were taken, shared or given back, and a digest of which, in order."""
        return self._moves, self._digest

    @property
    def indexed(self) -> frozenset[int]:
        """The pages that the index owns."""
        return frozenset(self._indexed)

    def owners(self, page: int) -> int:
        """How many own the page."""
        return self._owners[page]

    def is_indexed(self, page: int) -> bool:
        """Whether the index owns the page."""
        return page in self._indexed

    def is_idle(self, page: int) -> bool:
        """Whether the index alone owns the page."""
        return self._owners[page] == 1 and page in self._indexed

    def take(self, count: int) -> array[int]:
        """So many free pages, each owned once, idle ones let go of first if they must be.

        Raises:
            EngineError: there are fewer.
        """
        if count > len(self._free):
            self.evict(count - len(self._free))
        if count > len(self._free):
            raise EngineError(f"{count} pages are to be taken, {len(self._free)} of {self.total} are free")
        taken = array("i", (self._free.pop() for _ in range(count)))
        for page in taken:
            self._owners[page] = 1
            self._note(page)
        return taken

    def share(self, pages: Iterable[int]) -> None:
        """One more owner for each."""
        for page in pages:
            self._idle -= self.is_idle(page)
            self._owners[page] += 1
            self._note(page)

    def drop(self, pages: Iterable[int]) -> None:
        """One owner less for each; those without any are free, the first one to be taken first."""
        for page in reversed(list(pages)):
            self._owners[page] -= 1
            self._idle += self.is_idle(page)
            if not self._owners[page]:
                self._free.append(page)
            self._note(page)

    def enter(self, page: int) -> None:
        """The index owns the page too."""
        self.share((page,))
        self._indexed.add(page)

    def leave(self, page: int) -> None:
        """The index lets go of the page."""
        self._idle -= self.is_idle(page)
        self._indexed.discard(page)
        self.drop((page,))

    def check_integrity(self, owned: Iterable[int]) -> None:
        """Compare with what is owned by anybody but the index, a page named once for each owner.

        Raises:
            EngineError: naming the sum that does not hold.
        """
        expected = [0] * self.total
        for page in (*owned, *self._indexed):
            expected[page] += 1
        if wrong := {
            page: f"{self._owners[page]} counted, {count} found"
            for page, count in enumerate(expected)
            if count != self._owners[page]
        }:
            raise EngineError(f"the owners of these pages are counted wrong: {wrong}")
        if sorted(self._free) != [page for page in range(self.total) if not expected[page]]:
            raise EngineError(f"free and owned pages should be all pages once: {sorted(self._free)} are free")
        if self._idle != sum(map(self.is_idle, range(self.total))):
            raise EngineError(f"{self._idle} pages are said to be owned by the index alone")

    def _note(self, page: int) -> None:
        # Also how many own it now: taking, sharing and giving back are told apart.
        self._moves += 1
        self._digest = crc32(b"%d:%d" % (page, self._owners[page]), self._digest)
