"""One growing row of tokens, and the pages under it: taken, shared with a fork, leased, given back.

Full pages are shared and never copied. A page that is partly filled is shared as well, until one of its
owners writes: that one gets a page of its own with the same beginning.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from treadle.engine.resources.page_pool import PagePool


def no_pages() -> array[int]:
    """An empty list of pages, four bytes each."""
    return array("i")


@dataclass(slots=True)
class Lease:
    """Pages held for a stream that did not take them over yet.

    Attributes:
        pages: those that follow the stream's own.
        length: how many tokens the stream will have stored with them.
    """

    pages: array[int]
    length: int


@dataclass(slots=True)
class Reservation:
    """What the admitted step changed, until it commits.

    Attributes:
        taken: pages added at the end.
        copied: the shared page that a copy took the place of; still owned.
        lease: what was taken over.
        stored: tokens before that.
    """

    taken: int = 0
    copied: int | None = None
    lease: Lease | None = None
    stored: int = 0


@dataclass(slots=True)
class Fresh:
    """Pages that a step took, and which of them begin as a copy of another page: (from, to)."""

    pages: list[int] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Stream:
    """Pages of `pool` in the order of the tokens.

    Attributes:
        pool: accounts for the pages.
        page_size: tokens of a page.
        epoch: another number whenever the stored tokens moved to other pages.
        pages: from the first that was not given back.
        gone: pages given back in front of them.
        stored: tokens whose step committed, those of given back pages too.
        lease: pages held for the stream and not taken over.
        reserved: what an admitted step changed; None when there is none.
        born: an admitted step forked the stream into being.
    """

    pool: PagePool
    page_size: int
    epoch: int
    pages: array[int] = field(default_factory=no_pages)
    gone: int = 0
    stored: int = 0
    lease: Lease | None = None
    reserved: Reservation | None = None
    born: bool = False

    @property
    def start(self) -> int:
        """Where the next token goes: behind the lease."""
        return self.lease.length if self.lease else self.stored

    @property
    def owned(self) -> list[int]:
        """Each page that the stream owns, once for each time that it does."""
        held = [*self.pages, *(self.lease.pages if self.lease else ())]
        copied = self.reserved.copied if self.reserved else None
        return held if copied is None else [*held, copied]

    def missing(self, span: int) -> int:
        """Pages that `take` would take."""
        if not span:
            return 0
        lease, size = self.lease, self.page_size
        start, owned = self.stored, self.gone + len(self.pages)
        if lease:
            start, owned = lease.length, owned + len(lease.pages)
        lacking = -(-(start + span) // size) - owned
        return max(0, lacking) + (start % size > 0 and self._shares_a_part(start))

    def take(self, span: int, fresh: Fresh) -> int:
        """Take over the lease and what else so many tokens need, noted in `fresh`; returns how many pages.

        Again for the same step: nothing.
        """
        count = self.missing(span)
        if not span:
            return 0
        reserved = self.reserved = self.reserved or Reservation(stored=self.stored)
        if self.lease:
            reserved.lease, self.stored = self.lease, self.lease.length
            self.pages.extend(self.lease.pages)
            self.lease = None
        if count:
            self._take(count, reserved, fresh)
        return count

    def undo(self) -> int:
        """Be as before `take`, and return how many pages were given back."""
        reserved, self.reserved = self.reserved, None
        if reserved is None:
            return 0
        back = self.pages[len(self.pages) - reserved.taken :]
        del self.pages[len(self.pages) - reserved.taken :]
        if reserved.copied is not None:
            place = self.stored // self.page_size - self.gone
            back.insert(0, self.pages[place])
            self.pages[place] = reserved.copied
        if reserved.lease:
            del self.pages[len(self.pages) - len(reserved.lease.pages) :]
            self.lease, self.stored = reserved.lease, reserved.stored
        self.pool.drop(back)
        return len(back)

    def store(self, span: int, window: int | None = None) -> None:
        """So many tokens are stored; pages of which no later token sees any are given back."""
        if self.reserved and self.reserved.copied is not None:
            self.pool.drop((self.reserved.copied,))
        self.reserved, self.born = None, False
        self.stored += span
        if window is not None:
            unseen = max(0, (self.stored + 1 - window) // self.page_size - self.gone)
            self.pool.drop(self.pages[:unseen])
            del self.pages[:unseen]
            self.gone += unseen

    def follow(self, source: Stream) -> None:
        """Be a fork of another stream: all that it has stored, on the same pages."""
        held = source.pages + (source.lease.pages if source.lease else no_pages())
        self.pages = held[: -(-source.start // self.page_size) - source.gone]
        self.gone, self.stored, self.born = source.gone, source.start, True
        self.pool.share(self.pages)

    def serve(self, length: int) -> None:
        """Take so many tokens in all over from the lease, without a step."""
        if self.lease is not None:
            count = -(-length // self.page_size) - self.gone - len(self.pages)
            self.pages.extend(self.lease.pages[:count])
            del self.lease.pages[:count]
            if self.lease.length <= length:
                self.lease = None
        self.stored = length

    def _take(self, count: int, reserved: Reservation, fresh: Fresh) -> None:
        pages, place = self.pool.take(count), self.stored // self.page_size - self.gone
        fresh.pages += pages
        if self.stored % self.page_size and self._shares_a_part(self.stored):
            copy = pages.pop(0)
            reserved.copied, self.pages[place] = self.pages[place], copy
            fresh.copies.append((reserved.copied, copy))
        self.pages.extend(pages)
        reserved.taken += len(pages)

    def _shares_a_part(self, start: int) -> bool:
        """Whether the page of token `start`, which has earlier ones, has other owners too."""
        place, own = start // self.page_size - self.gone, len(self.pages)
        page = self.lease.pages[place - own] if self.lease and place >= own else self.pages[place]
        return self.pool.owners(page) > 1
