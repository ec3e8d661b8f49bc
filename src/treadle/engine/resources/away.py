"""Requests whose pages were given back while what they held is kept elsewhere."""

from __future__ import annotations

from array import array

from treadle.engine.resources.accounts import Accounts


class Away:
    """Sends requests of `accounts` away and brings them back, on other pages."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def __contains__(self, rid: str) -> bool:
        account = self._accounts.find(rid)
        return account is not None and account.away is not None

    def can_send(self, rid: str) -> bool:
        """Whether the request has pages to give back, and no step is under way with it."""
        account = self._accounts.find(rid)
        if account is None or account.away is not None:
            return False
        streams = account.streams.values()
        return any(each.pages for each in streams) and not any(each.reserved or each.born for each in streams)

    def pages_of(self, rid: str) -> list[int]:
        """The request's pages, each once: what has to be kept elsewhere before it is sent.

        Raises:
            EngineError: the request is not open.
        """
        streams = self._accounts.get(rid).by_label().values()
        return list(dict.fromkeys(page for stream in streams for page in stream.pages))

    def send(self, rid: str) -> None:
        """Give back the request's pages and take back its promise; only after `can_send`."""
        account = self._accounts.get(rid)
        place = {page: at for at, page in enumerate(self.pages_of(rid))}
        streams = account.by_label()
        self._accounts.set_away(account, {k: [place[page] for page in s.pages] for k, s in streams.items()})
        for stream in reversed(streams.values()):
            self._accounts.pool.drop(stream.pages)
            del stream.pages[:]

    def can_bring_back(self, rid: str) -> bool:
        """Whether the request is away, and there is room for its pages and its promise."""
        account = self._accounts.find(rid)
        if account is None or account.away is None:
            return False
        left = max(0, account.promised - account.used)
        return _distinct(account.away) + left <= self._accounts.unpromised

    def bring_back(self, rid: str) -> list[int]:
        """New pages, in the order of `pages_of`; only after `can_bring_back`."""
        account, pool = self._accounts.get(rid), self._accounts.pool
        away = account.away or {}
        pages = pool.take(_distinct(away)).tolist()
        self._accounts.set_away(account, None)
        seen: set[int] = set()
        for label, places in away.items():
            stream = account.streams[label]
            stream.pages = array("i", (pages[at] for at in places))
            stream.epoch = self._accounts.next_epoch()
            pool.share(page for page in stream.pages if page in seen)
            seen.update(stream.pages)
        return pages


def _distinct(away: dict[str, list[int]]) -> int:
    return 1 + max((at for places in away.values() for at in places), default=-1)
