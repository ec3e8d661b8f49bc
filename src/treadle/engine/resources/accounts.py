"""What each request holds and was promised: the sums that let a request that began be carried to its end.

What is promised and not yet taken never exceeds what is free or idle.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator
from dataclasses import dataclass, field
from itertools import count

from treadle.engine.resources.page_pool import PagePool
from treadle.engine.resources.streams import Stream
from treadle.errors import EngineError


@dataclass(slots=True, eq=False)
class Account:
    """One request.

    Attributes:
        promised: pages it was promised.
        used: pages it has had.
        streams: by label.
        away: label -> which of the pages that were sent away stand under that stream; None when it is here.
    """

    promised: int
    used: int = 0
    streams: dict[str, Stream] = field(default_factory=dict)
    away: dict[str, list[int]] | None = None

    def by_label(self) -> dict[str, Stream]:
        """The streams in the order of their labels, which no refused step has changed."""
        return dict(sorted(self.streams.items()))

    @property
    def outstanding(self) -> int:
        """Pages that it may still ask for."""
        return 0 if self.away is not None else max(0, self.promised - self.used)


class Accounts:
    """The requests that share a pool of pages, each of `page_size` tokens."""

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self.pool = pool
        self.page_size = page_size
        self._accounts: dict[str, Account] = {}
        self._outstanding = 0
        self._epochs = count(1)

    def __contains__(self, rid: object) -> bool:
        return rid in self._accounts

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def items(self) -> ItemsView[str, Account]:
        """Request -> account."""
        return self._accounts.items()

    @property
    def unpromised(self) -> int:
        """Pages that can be had beside all promises."""
        return self.pool.available - self._outstanding

    def pages_for(self, tokens: int) -> int:
        """Pages that so many tokens need."""
        return -(-tokens // self.page_size)

    def open(self, rid: str, pages: int) -> None:
        """Open a request and promise it so many pages.

        Raises:
            EngineError: it is open already, or the promise could not be kept.
        """
        if rid in self._accounts:
            raise EngineError(f"request {rid!r} is open already: remove it first")
        if pages > self.unpromised:
            raise EngineError(
                f"request {rid!r} asks for {pages} pages, {self.unpromised} of "
                f"{self.pool.total} can be promised: ask can_promise first"
            )
        self._accounts[rid] = Account(pages)
        self._outstanding += pages

    def close(self, rid: str) -> None:
        """Free all pages of a request; one that is unknown has none."""
        account = self._accounts.pop(rid, None)
        if account is not None:
            self._outstanding -= account.outstanding
            for stream in reversed(account.by_label().values()):
                self.pool.drop(stream.owned)

    def find(self, rid: str) -> Account | None:
        """The request's account, None when it is not open."""
        return self._accounts.get(rid)

    def get(self, rid: str) -> Account:
        """The request's account.

        Raises:
            EngineError: the request is not open.
        """
        if rid not in self._accounts:
            raise EngineError(f"request {rid!r} is not open here: ingest it before a step names it")
        return self._accounts[rid]

    def stream(self, rid: str, label: str = "main") -> Stream:
        """The stream of that label, empty when nothing was added to it yet.

        Raises:
            EngineError: the request is not open.
        """
        streams = self.get(rid).streams
        if label not in streams:
            streams[label] = Stream(self.pool, self.page_size, self.next_epoch())
        return streams[label]

    def next_epoch(self) -> int:
        """A number that no stream has or had."""
        return next(self._epochs)

    def use(self, account: Account, pages: int) -> None:
        """The request got so many pages, or gave them back when below 0."""
        before = account.outstanding
        account.used += pages
        self._outstanding += account.outstanding - before

    def set_away(self, account: Account, away: dict[str, list[int]] | None) -> None:
        """While a request is away nothing is promised to it."""
        before = account.outstanding
        account.away = away
        self._outstanding += account.outstanding - before

    def unpromise(self, account: Account) -> None:
        """Take back of the request's promise what can no longer be kept."""
        short = min(0, self.unpromised)
        account.promised += short
        self._outstanding += short

    def check_integrity(self) -> None:
        """Raise EngineError naming the sum that does not hold."""
        streams = [each for account in self for each in account.streams.values()]
        self.pool.check_integrity(page for stream in streams for page in stream.owned)
        for account in self:
            for stream in account.streams.values():
                if account.away is None and self.pages_for(stream.stored) > stream.gone + len(stream.pages):
                    raise EngineError(f"a stream owns too few pages for what it stores: {stream}")
        if self._outstanding != sum(each.outstanding for each in self):
            raise EngineError(f"{self._outstanding} pages are said to be promised and not taken")
        if self.unpromised < 0:
            raise EngineError(f"{-self.unpromised} more pages are promised than there are free")
