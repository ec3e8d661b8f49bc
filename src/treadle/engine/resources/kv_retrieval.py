"""Brings in what another node published, by copying its pages out of the file that both map."""

from __future__ import annotations

import torch

from treadle.engine.resources.kv_publication import KvDescriptor, KvPublication
from treadle.engine.resources.kv_store import KvStore
from treadle.engine.resources.pages import PageLedger
from treadle.engine.resources.step import NO_ROOM, READY, AdmitOutcome, Refusal, Segment
from treadle.errors import EngineError

_IMPOSSIBLE = AdmitOutcome(ok=False, ready=False, reason=Refusal.RUNTIME_ERROR)


class KvRetrieval:
    """Retrieves into `store`, whose pages are those of `ledger` and of the kind of `own`."""

    def __init__(self, ledger: PageLedger, store: KvStore, own: KvDescriptor) -> None:
        self._ledger = ledger
        self._store = store
        self._own = own
        self._sources: dict[str, KvStore] = {}
        self._here: dict[str, KvPublication] = {}

    def admit(self, rid: str, published: KvPublication) -> AdmitOutcome:
        """Copy what was published into pages of the request; once, however often it is asked.

        Refused for good when its pages are of another kind, or in memory that nobody else can read.

        Raises:
            EngineError: the request is not open, or has stored tokens of its own.
        """
        if self._here.get(rid) == published:
            return READY
        stream = self._ledger.stream(rid)
        if stream.start or stream.reserved:
            raise EngineError(f"request {rid!r} has tokens here already: retrieve into an empty one")
        if published.descriptor.path is None or not published.descriptor.fits(self._own):
            return _IMPOSSIBLE
        stream.gone, rows = published.gone, (Segment(rid, published.length),)
        if not self._ledger.can_take(rows):
            stream.gone = 0
            return NO_ROOM
        fresh = self._ledger.take(rows)
        source = self._source(published.descriptor, published.descriptor.path)
        self._store.fill(fresh.pages, source.read(published.pages))
        self._ledger.store(rows)
        self._here[rid] = published
        return READY

    def remove(self, rid: str) -> None:
        """Forget that the request was brought in."""
        self._here.pop(rid, None)

    def _source(self, descriptor: KvDescriptor, path: str) -> KvStore:
        if path not in self._sources:
            self._sources[path] = KvStore(
                descriptor.shape,
                descriptor.pages,
                descriptor.page_size,
                getattr(torch, descriptor.dtype),
                path,
            )
        return self._sources[path]
