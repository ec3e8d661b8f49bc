"""Prefixes of the KV cache: found, agreed on, held for a request, and made from what it stores.

A request is looked up in one of two ways. With a layout, told at ingest, all its walks are one text: the
pages are held from then on, and each walk is served its part. Without one, each walk is looked up when it
is asked about. The last token is never served, for its scores are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treadle.engine.resources.leases import Leases
from treadle.engine.resources.pages import PageLedger
from treadle.engine.resources.prefix_index import Chain, PrefixIndex
from treadle.engine.resources.prefix_layout import PrefixLayout
from treadle.engine.resources.step import CachedPrefix, Segment
from treadle.engine.resources.streams import Stream
from treadle.errors import EngineError


@dataclass(slots=True)
class Known:
    """What is known of one request's text.

    Attributes:
        chain: its tokens and keys.
        layout: its walks, when they were told.
        indexed: pages that were offered to the index.
        agreed: how many tokens the walk is served up to.
    """

    chain: Chain
    layout: PrefixLayout | None = None
    indexed: int = 0
    agreed: int = 0


class KvPrefixes:
    """The prefixes of the main streams of `ledger`.

    Args:
        ledger: the pages.
        every: generated tokens that may wait before they are hashed.
    """

    def __init__(self, ledger: PageLedger, every: int = 1) -> None:
        self.index = PrefixIndex(ledger.accounts.pool)
        self.leases = Leases(ledger.accounts)
        self._ledger = ledger
        self._every = every
        self._known: dict[str, Known] = {}

    @property
    def open(self) -> bool:
        """Whether the text of any request is known."""
        return bool(self._known)

    def ingest(self, rid: str, layout: PrefixLayout) -> None:
        """Hold what is cached of a text told in advance, all its walks together."""
        known = self._known[rid] = Known(Chain(self._ledger.page_size, self._every), layout)
        known.chain.expect(0, layout.tokens)
        self._hold(rid, known, 0, len(known.chain))

    def resolve(self, rid: str, graph_walk: str, inputs: Sequence[int]) -> CachedPrefix | None:
        """See `CachingPrefixes`."""
        stream = self._stream(rid)
        if stream is None or stream.reserved:
            return None
        known = self._known.setdefault(rid, Known(Chain(self._ledger.page_size, self._every)))
        if known.layout is not None:
            return self._resolve_span(rid, known, known.layout, graph_walk, inputs)
        if len(known.chain) < stream.stored or stream.stored % self._ledger.page_size:
            return None
        if known.chain.expect(stream.stored, inputs):
            self.release(rid)
        if stream.lease is None:
            self._hold(rid, known, stream.stored, stream.stored + len(inputs))
        served = min(stream.start - stream.stored, max(0, len(inputs) - 1))
        return CachedPrefix(served) if served else None

    def apply(self, rid: str, inputs: Sequence[int], prefix: CachedPrefix) -> None:
        """See `CachingPrefixes`.

        Raises:
            EngineError: more was agreed on than is held here.
        """
        stream = self._stream(rid)
        if stream is None:
            return
        known = self._known.setdefault(rid, Known(Chain(self._ledger.page_size, self._every)))
        if known.layout is None and len(known.chain) >= stream.stored:
            known.chain.expect(stream.stored, inputs)
        known.agreed = stream.stored + prefix.length
        if known.agreed > stream.start:
            raise EngineError(
                f"{prefix.length} tokens of request {rid!r} were agreed on, the KV cache holds "
                f"{stream.start - stream.stored}: resolve or adopt before"
            )
        if not prefix.whole:
            self.leases.shorten(rid, known.agreed)

    def complete(self, rid: str) -> None:
        """See `CachingPrefixes`."""
        stream, known = self._stream(rid), self._known.get(rid)
        if stream is not None and known is not None and known.agreed > stream.stored:
            stream.serve(known.agreed)

    def adopt(self, rid: str, pages: Sequence[int], caught_up: bool) -> bool:
        """See `LeasingPrefixes`."""
        pool = self._ledger.accounts.pool
        if rid not in self._ledger.accounts:
            return False
        lease = self.leases.of(rid)
        if lease is not None and list(lease.pages) == list(pages):
            return True
        here = all(page < pool.total and pool.is_indexed(page) for page in pages)
        if here and self.leases.hold(rid, pages) == len(pages):
            return True
        self.release(rid)
        if caught_up:
            raise EngineError(
                f"the leader holds pages {list(pages)} for request {rid!r}, and not all of them are cached "
                "here: the ranks do not allocate alike"
            )
        return False

    def release(self, rid: str) -> None:
        """See `LeasingPrefixes`."""
        self.leases.shorten(rid, 0)

    def extend(self, rid: str, outputs: Sequence[int]) -> None:
        """See `ExtendingPrefixes`."""
        if known := self._known.get(rid):
            known.chain.extend(outputs)
            self._offer(rid, known)

    def committed(self, rows: Iterable[Segment]) -> None:
        """Offer the pages that became full to the index."""
        for rid, span, label in rows:
            known = self._known.get(rid) if span and label == "main" else None
            if known is not None:
                self._offer(rid, known)

    def remove(self, rid: str) -> None:
        """Hash what waits, so that it can be matched, and forget the request; before its pages go."""
        if known := self._known.pop(rid, None):
            known.chain.flush()
            self._offer(rid, known)

    def distrust(self, rid: str, start: int) -> None:
        """What the request stored from token `start` on is nobody's prefix, nor what will follow it."""
        self._known.pop(rid, None)
        if stream := self._stream(rid):
            self.index.forget(frozenset(stream.pages[start // self._ledger.page_size :]))

    def _resolve_span(
        self, rid: str, known: Known, layout: PrefixLayout, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        """The walk's part of what is held for the whole text."""
        stream = self._ledger.stream(rid)
        span = layout.span_at(stream.stored)
        served = min(stream.start - stream.stored, len(inputs))
        whole = served == len(inputs)
        agrees = span is not None and (span.graph_walk, span.tokens) == (graph_walk, tuple(inputs))
        if span is None or not agrees or (served and not whole and not span.cuttable):
            self._disagree(rid, stream)
            return None
        return CachedPrefix(served, whole) if served else None

    def _disagree(self, rid: str, stream: Stream) -> None:
        """The walk is not the one that was told: keep what was served, and look nothing up any more."""
        self.leases.shorten(rid, stream.stored)
        del self._known[rid]
        inside = stream.stored % self._ledger.page_size > 0
        if inside and self._ledger.accounts.pool.is_indexed(stream.pages[-1]):
            raise EngineError(
                f"request {rid!r} was served {stream.stored} tokens, which end inside a cached page, and its "
                "next walk is not the one of its layout: nothing can be stored behind them"
            )

    def _hold(self, rid: str, known: Known, start: int, end: int) -> None:
        """Hold what is cached of the text from `start` on, but for its last token."""
        size = self._ledger.page_size
        keys = known.chain.keys[: max(0, end - 1) // size]
        pages = self.index.match(keys)[start // size :]
        if pages:
            self.leases.hold(rid, pages)

    def _offer(self, rid: str, known: Known) -> None:
        stream = self._stream(rid)
        if stream is None:
            return
        full = min(stream.stored // self._ledger.page_size, len(known.chain.keys))
        if stream.stored > len(known.chain):
            # Tokens were stored that nobody named: what comes after them has no key.
            self._known.pop(rid, None)
        elif full > known.indexed and not stream.gone:
            new = slice(known.indexed, full)
            self.index.add(known.chain.keys[new], stream.pages[new])
            known.indexed = full

    def _stream(self, rid: str) -> Stream | None:
        """The request's main stream, None when it is not here."""
        account = self._ledger.accounts.find(rid)
        return None if account is None or account.away is not None else self._ledger.stream(rid)
