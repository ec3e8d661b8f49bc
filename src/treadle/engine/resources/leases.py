"""Pages held for a request that will run on them: taken over by its next step, or given back.

Holding an idle page takes it from what can be promised to others, and stands for a page that was promised
to the request itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from treadle.engine.resources.accounts import Account, Accounts
from treadle.engine.resources.streams import Lease


class Leases:
    """The leases of the main streams of `accounts`."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def of(self, rid: str) -> Lease | None:
        """What is held for a request and not taken over."""
        account = self._accounts.find(rid)
        return account.streams["main"].lease if account and "main" in account.streams else None

    def hold(self, rid: str, pages: Sequence[int]) -> int:
        """Hold full pages that follow those of the stream; returns how many could be held, from the first on.

        Raises:
            EngineError: the request is not open.
        """
        account, stream = self._accounts.get(rid), self._accounts.stream(rid)
        self.shorten(rid, 0)
        held = len(pages)
        while held and not self._may_pin(account, pages[:held]):
            held -= 1
        if held:
            self._accounts.pool.share(pages[:held])
            self._accounts.use(account, held)
            length = (stream.gone + len(stream.pages) + held) * self._accounts.page_size
            stream.lease = Lease(array("i", pages[:held]), length)
        return held

    def shorten(self, rid: str, length: int) -> None:
        """Hold no more than the stream needs for so many tokens; 0 ends the lease. Safe without one.

        What the lease stood for is promised to the request again, as far as that can still be kept.
        """
        lease, account = self.of(rid), self._accounts.find(rid)
        if lease is None or account is None:
            return
        stream = account.streams["main"]
        kept = max(0, self._accounts.pages_for(length) - stream.gone - len(stream.pages))
        given, lease.pages = lease.pages[kept:], lease.pages[:kept]
        lease.length = min(length, lease.length)
        if lease.length <= stream.stored:
            stream.lease = None
        self._accounts.pool.drop(given)
        self._accounts.use(account, -len(given))
        self._accounts.unpromise(account)

    def _may_pin(self, account: Account, pages: Sequence[int]) -> bool:
        """Whether what is promised to others is still there when these are no longer idle."""
        idle = sum(map(self._accounts.pool.is_idle, pages))
        return idle <= self._accounts.unpromised + min(len(pages), account.outstanding)
