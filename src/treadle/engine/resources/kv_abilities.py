"""What the KV cache can do beyond the cycle of a step: one protocol after the other, each handed on.

A cache that was built without a prefix cache has no opinion on prefixes, and without a host pool nothing
can be offloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from treadle.engine.resources.kv_capture import KvCapture
from treadle.engine.resources.kv_offload import KvOffload
from treadle.engine.resources.kv_prefixes import KvPrefixes
from treadle.engine.resources.kv_publication import KvPublication, KvPublisher, KvSnapshot
from treadle.engine.resources.kv_retrieval import KvRetrieval
from treadle.engine.resources.pages import PageLedger
from treadle.engine.resources.protocols import Holdings, WalkOf
from treadle.engine.resources.step import READY, AdmitOutcome, CachedPrefix, PublishedInfo
from treadle.errors import EngineError


class KvAbilities:
    """Hands on to its parts, which all work on `ledger`."""

    def __init__(
        self,
        ledger: PageLedger,
        prefixes: KvPrefixes | None,
        offloaded: KvOffload | None,
        publisher: KvPublisher,
        retrieval: KvRetrieval,
        capture: KvCapture,
    ) -> None:
        self.ledger = ledger
        self.prefixes = prefixes
        self._offloaded = offloaded
        self._publisher = publisher
        self._retrieval = retrieval
        self._capture = capture

    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        """See `CachingPrefixes`; full pages only, and never the last token. Holds them for the request.

        Raises:
            EngineError: the walk is not that of the request's layout, and what was served before ends
                inside a page.
        """
        return self.prefixes.resolve(rid, graph_walk, inputs) if self.prefixes else None

    def apply_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        """See `CachingPrefixes`.

        Raises:
            EngineError: more was agreed on than is held here.
        """
        if self.prefixes:
            self.prefixes.apply(rid, inputs, prefix)
        elif prefix.length:
            raise EngineError(
                f"{prefix.length} tokens of request {rid!r} were agreed on; this KV cache keeps no prefixes: "
                "build it with prefix_cache"
            )

    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        """See `CachingPrefixes`."""
        if self.prefixes:
            self.prefixes.complete(rid)

    def lease_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> Sequence[int]:
        """See `LeasingPrefixes`."""
        lease = self.prefixes.leases.of(rid) if self.prefixes else None
        return lease.pages.tolist() if lease else []

    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        """See `LeasingPrefixes`.

        Raises:
            EngineError: the ranks do not allocate alike.
        """
        return self.prefixes is not None and self.prefixes.adopt(rid, lease, caught_up)

    def release_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> None:
        """See `LeasingPrefixes`."""
        if self.prefixes:
            self.prefixes.release(rid)

    @property
    def prefix_cache_open(self) -> bool:
        """See `ExtendingPrefixes`."""
        return self.prefixes is not None and self.prefixes.open

    def extend_prefix_chain(self, rid: str, node_name: str, graph_walk: str, outputs: Sequence[int]) -> None:
        """See `ExtendingPrefixes`."""
        if self.prefixes:
            self.prefixes.extend(rid, outputs)

    def extend_prefix_chain_batch(
        self,
        request_ids: Sequence[str],
        node_name: str,
        walk_of: WalkOf,
        host_rows: Sequence[Sequence[int]],
    ) -> None:
        """See `ExtendingPrefixBatches`."""
        if self.prefixes:
            for rid, row in zip(request_ids, host_rows, strict=True):
                self.prefixes.extend(rid, row)

    def distrust(self, rid: str, start: int) -> None:
        """The pass of a committed step failed: what it was to store from token `start` on is no prefix."""
        if self.prefixes:
            self.prefixes.distrust(rid, start)

    def page_trail(self) -> tuple[int, int]:
        """See `TrailingPages`."""
        return self.ledger.accounts.pool.trail

    def can_offload(self, rid: str) -> bool:
        """See `Offloading`."""
        return self._offloaded is not None and self._offloaded.can_offload(rid)

    def offload(self, rid: str) -> int:
        """See `Offloading`.

        Raises:
            EngineError: not after `can_offload`.
        """
        return self._host().offload(rid)

    def is_offloaded(self, rid: str) -> bool:
        """See `Offloading`."""
        return self._offloaded is not None and rid in self._offloaded

    def can_reload(self, rid: str) -> bool:
        """See `Offloading`."""
        return self._offloaded is not None and self._offloaded.can_reload(rid)

    def reload(self, rid: str) -> None:
        """See `Offloading`.

        Raises:
            EngineError: not after `can_reload`.
        """
        self._host().reload(rid)

    def publish(self, rid: str, node_name: str | None, graph_walk: str | None) -> KvPublication | None:
        """See `Publishing`; None while the request is away."""
        snapshot = self._publisher.snapshot(rid)
        return None if snapshot is None else self._publisher.finished(snapshot)

    def publish_snapshot(self, rid: str, node_name: str | None, graph_walk: str | None) -> KvSnapshot | None:
        """See `PublishingSnapshots`."""
        return self._publisher.snapshot(rid)

    def publish_snapshot_batch(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: Callable[[str], str | None]
    ) -> Mapping[str, KvSnapshot]:
        """See `PublishingSnapshotBatches`."""
        taken = ((rid, self._publisher.snapshot(rid)) for rid in request_ids)
        return {rid: snapshot for rid, snapshot in taken if snapshot is not None}

    def publish_from_snapshot(
        self, rid: str, snapshot: object, node_name: str | None, graph_walk: str | None
    ) -> KvPublication | None:
        """See `PublishingSnapshots`; None from None."""
        if snapshot is not None and not isinstance(snapshot, KvSnapshot):
            raise EngineError(f"the KV cache finishes a KvSnapshot, got {type(snapshot).__name__}")
        return None if snapshot is None else self._publisher.finished(snapshot)

    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        """See `Retrieving`; ready at once, for the pages are copied here and now.

        Raises:
            EngineError: what was published is not of a KV cache, or the request is not open or not empty.
        """
        if published is None:
            return READY
        if not isinstance(published, KvPublication):
            raise EngineError(f"the KV cache retrieves a KvPublication, got {type(published).__name__}")
        return self._retrieval.admit(rid, published)

    def ingest_capture_row(self, rid: str) -> None:
        """See `Capturing`; a captured step has it decode into the sink page."""
        self.ledger.open(rid, 0)

    def build_accelerator_graph_buffers(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        """See `Capturing`.

        Raises:
            ArgumentError: a number below 1, or a cache with a path or a window.
        """
        self._capture.build(slots, max_bs, max_seq_len)

    def holdings(self) -> Holdings:
        """See `Accounting`; the index keeps its pages, and requests share those that several own."""
        pool = self.ledger.accounts.pool
        held = {
            rid: tuple(dict.fromkeys(chain.from_iterable(each.owned for each in account.by_label().values())))
            for rid, account in self.ledger.accounts.items()
        }
        several = (page for page in range(pool.total) if pool.owners(page) > 1)
        return Holdings(pool.free, held, pool.indexed, frozenset(several))

    def _host(self) -> KvOffload:
        if self._offloaded is None:
            raise EngineError("this KV cache has no host pool: build it with host_pages")
        return self._offloaded
