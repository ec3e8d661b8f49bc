"""Requests whose pages wait in the host pool while others use the room."""

from __future__ import annotations

from treadle.engine.resources.away import Away
from treadle.engine.resources.host_pool import HostPool
from treadle.engine.resources.kv_store import KvStore
from treadle.engine.resources.pages import PageLedger
from treadle.errors import EngineError


class KvOffload:
    """Moves the pages of requests of `ledger` between `store` and `host`."""

    def __init__(self, ledger: PageLedger, store: KvStore, host: HostPool) -> None:
        self._pool = ledger.accounts.pool
        self._away = Away(ledger.accounts)
        self._store = store
        self._host = host

    @property
    def empty(self) -> bool:
        """Whether no request is away."""
        return self._host.empty

    def __contains__(self, rid: str) -> bool:
        return rid in self._away

    def can_offload(self, rid: str) -> bool:
        """See `Offloading`."""
        return self._away.can_send(rid) and self._host.has_room(len(self._away.pages_of(rid)))

    def offload(self, rid: str) -> int:
        """See `Offloading`."""
        if not self.can_offload(rid):
            raise EngineError(f"request {rid!r} cannot be offloaded now: ask can_offload first")
        pages, before = self._away.pages_of(rid), self._pool.available
        self._host.put(rid, self._store.read(pages), len(pages))
        self._away.send(rid)
        return self._pool.available - before

    def can_reload(self, rid: str) -> bool:
        """See `Offloading`."""
        return self._away.can_bring_back(rid)

    def reload(self, rid: str) -> None:
        """See `Offloading`."""
        if not self.can_reload(rid):
            raise EngineError(f"request {rid!r} cannot be loaded back now: ask can_reload first")
        self._store.fill(self._away.bring_back(rid), self._host.take(rid))

    def remove(self, rid: str) -> None:
        """Forget what waits of a request."""
        self._host.drop(rid)

    def check_integrity(self) -> None:
        """Raise EngineError naming the sum that does not hold."""
        self._host.check_integrity()
