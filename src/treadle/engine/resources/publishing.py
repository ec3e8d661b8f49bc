"""Tells other nodes what a request's resources hold, and brings in what others told.

What is published is `{request: {key: info}}`. Put off, it is the same in two halves: little is noted when a
step ends, and the rest is done only for the requests of which somebody wants to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from treadle.engine.resources.protocols import (
    Publishing,
    PublishingAfterStop,
    PublishingSnapshotBatches,
    PublishingSnapshots,
    Retrieving,
)
from treadle.engine.resources.scope import Scope
from treadle.engine.resources.step import FullAdmitOutcome, PublishedInfo
from treadle.errors import EngineError

Published = dict[str, dict[str, PublishedInfo]]
"""Request -> resource key -> what it tells."""

MaybeWalkOf = Callable[[str], str | None]
"""Request -> its walk, None where none is known."""


class _Deferred(NamedTuple):
    """One publisher's two halves, whatever form it has."""

    take: Callable[[Sequence[str], str | None, MaybeWalkOf], Mapping[str, object]]
    finish: Callable[[str, object, str | None, str | None], PublishedInfo | None]


class Publication:
    """The resources of `scope` that publish or retrieve."""

    def __init__(self, scope: Scope) -> None:
        everything = scope.resources.items()
        publishers = {key: each for key, each in everything if isinstance(each, Publishing)}
        self._publishers = scope.share({key: each.publish for key, each in publishers.items()})
        self._deferred = scope.share({key: _deferred(key, each) for key, each in publishers.items()})
        self._after_stop = scope.share(
            {
                key: each.publish_after_stop
                for key, each in everything
                if isinstance(each, PublishingAfterStop)
            }
        )
        self._retrievers = scope.share(
            {key: each for key, each in everything if isinstance(each, Retrieving)}
        )

    def publish(self, request_ids: Sequence[str], node_name: str | None, walk_of: MaybeWalkOf) -> Published:
        """What each request's resources tell now; a request of which nothing is to be told has no keys."""
        return _told(self._publishers.of(node_name), request_ids, node_name, walk_of)

    def publish_after_stop(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: MaybeWalkOf
    ) -> Published:
        """What those tell that speak when a loop has stopped."""
        return _told(self._after_stop.of(node_name), request_ids, node_name, walk_of)

    def snapshots(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: MaybeWalkOf
    ) -> dict[str, dict[str, object]]:
        """Request -> key -> what it takes to publish this moment later; no entry for what stays silent."""
        taken = {
            key: each.take(request_ids, node_name, walk_of)
            for key, each in self._deferred.of(node_name).items()
        }
        noted = {rid: {key: by[rid] for key, by in taken.items() if rid in by} for rid in request_ids}
        return {rid: by_key for rid, by_key in noted.items() if by_key}

    def from_snapshots(
        self,
        snapshots: Mapping[str, Mapping[str, object]],
        request_ids: Sequence[str],
        node_name: str | None,
        walk_of: MaybeWalkOf,
    ) -> Published:
        """What `publish` would have said when the snapshots were taken; no entry where nothing was."""
        told: Published = {}
        own = self._deferred.of(node_name)
        for rid in request_ids:
            noted, walk = snapshots.get(rid, {}), walk_of(rid)
            finished = {key: own[key].finish(rid, noted[key], node_name, walk) for key in own if key in noted}
            if by_key := {key: info for key, info in finished.items() if info is not None}:
                told[rid] = by_key
        return told

    def retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: Mapping[str, PublishedInfo]
    ) -> FullAdmitOutcome:
        """Bring in what was published for the node's resources; the first that fails ends it, named."""
        ready = True
        for key, resource in self._retrievers.of(node_name).items():
            answer = resource.admit_retrieve(rid, node_name, graph_walk, published.get(key))
            if not answer.ok:
                return FullAdmitOutcome(ok=False, ready=False, reason=answer.reason, key=key)
            ready = ready and answer.ready
        return FullAdmitOutcome(ok=True, ready=ready)


def walks(graph_walk: str | None, request_walks: Mapping[str, str] | None) -> MaybeWalkOf:
    """Each request's own walk, or else the one of the step."""
    own = request_walks or {}
    return lambda rid: own.get(rid, graph_walk)


def _told(
    publishers: Mapping[str, Callable[[str, str | None, str | None], PublishedInfo | None]],
    request_ids: Sequence[str],
    node_name: str | None,
    walk_of: MaybeWalkOf,
) -> Published:
    told: Published = {rid: {} for rid in request_ids}
    for rid, by_key in told.items() if publishers else ():
        walk = walk_of(rid)
        for key, publish in publishers.items():
            if (info := publish(rid, node_name, walk)) is not None:
                by_key[key] = info
    return told


def _deferred(key: str, resource: Publishing) -> _Deferred:
    if isinstance(resource, PublishingSnapshotBatches):
        return _Deferred(resource.publish_snapshot_batch, resource.publish_from_snapshot)
    if isinstance(resource, PublishingSnapshots):
        return _Deferred(_one_by_one(resource.publish_snapshot), resource.publish_from_snapshot)

    def as_it_was(rid: str, snapshot: object, *_: str | None) -> PublishedInfo:
        if not isinstance(snapshot, PublishedInfo):
            raise EngineError(
                f"the snapshot of request {rid!r} for resource {key!r} should be what it published, "
                f"got a {type(snapshot).__name__}: hand in what publish_snapshot gave"
            )
        return snapshot

    return _Deferred(_one_by_one(resource.publish), as_it_was)


def _one_by_one(
    take: Callable[[str, str | None, str | None], object | None],
) -> Callable[[Sequence[str], str | None, MaybeWalkOf], Mapping[str, object]]:
    def take_all(
        request_ids: Sequence[str], node_name: str | None, walk_of: MaybeWalkOf
    ) -> Mapping[str, object]:
        taken = ((rid, take(rid, node_name, walk_of(rid))) for rid in request_ids)
        return {rid: snapshot for rid, snapshot in taken if snapshot is not None}

    return take_all
