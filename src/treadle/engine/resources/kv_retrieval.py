"""Brings in what another node published, by copying its pages out of the file that both map."""

from __future__ import annotations

from pathlib import Path

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
            EngineError: the request is not open, or has stored tokens of its own; or what was published
                cannot be read: then nothing was taken.
        """
        if self._here.get(rid) == published:
            return READY
        stream = self._ledger.stream(rid)
        if stream.start or stream.reserved:
            raise EngineError(f"request {rid!r} has tokens here already: retrieve into an empty one")
        if published.descriptor.path is None or not published.descriptor.fits(self._own):
            return _IMPOSSIBLE
        _check(published)
        source = self._source(published.descriptor, published.descriptor.path)
        stream.gone, rows = published.gone, (Segment(rid, published.length),)
        if not self._ledger.can_take(rows):
            stream.gone = 0
            return NO_ROOM
        fresh = self._ledger.take(rows)
        self._store.fill(fresh.pages, source.read(published.pages))
        self._ledger.store(rows)
        self._here[rid] = published
        return READY

    def remove(self, rid: str) -> None:
        """Forget that the request was brought in."""
        self._here.pop(rid, None)

    def _source(self, descriptor: KvDescriptor, path: str) -> KvStore:
        if path not in self._sources:
            dtype: torch.dtype = getattr(torch, descriptor.dtype)
            _check_file(path, descriptor.numbers * dtype.itemsize)
            self._sources[path] = KvStore(
                descriptor.shape, descriptor.pages, descriptor.page_size, dtype, path
            )
        return self._sources[path]


def _check(published: KvPublication) -> None:
    length, pages, descriptor = published.length, published.pages, published.descriptor
    expected = -(-length // descriptor.page_size) - published.gone
    if len(pages) != expected or not all(0 <= page < descriptor.pages for page in pages):
        raise EngineError(
            f"{length} tokens, {published.gone} pages of which are gone, stand on {expected} of the pages "
            f"0 to {descriptor.pages - 1}; published is {list(pages)}"
        )


def _check_file(path: str, expected: int) -> None:
    """Or else one that is gone would be made anew, full of zeros."""
    found = Path(path).stat().st_size if Path(path).exists() else None
    if found is None or found < expected:
        raise EngineError(
            f"the published pages stand in {path}, which should have {expected} bytes and "
            f"{'is not there' if found is None else f'has {found}'}: publish again from a node that runs"
        )
