"""What the resources of a node agree on about a prefix that is stored already, so that nobody computes it.

resolve   the longest prefix that all can serve
apply     everyone gets it, and the step begins behind it
complete  or the whole walk was served, and does not run
lease, adopt, release    its pages, held for the request on every rank alike
extend    what a request generates is a prefix for its next turn
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from treadle.engine.resources.protocols import (
    CachingPrefixes,
    ExtendingPrefixBatches,
    ExtendingPrefixes,
    LeasingPrefixes,
    TrailingPages,
    WalkOf,
)
from treadle.engine.resources.scope import Scope
from treadle.engine.resources.step import CachedPrefix
from treadle.errors import EngineError
from treadle.kernel import Unwind


class PrefixCache:
    """The resources of `scope` that cache prefixes, lease pages, extend chains or leave trails."""

    def __init__(self, scope: Scope) -> None:
        everything = scope.resources.items()
        self._caching = scope.share({k: each for k, each in everything if isinstance(each, CachingPrefixes)})
        self._leasing = scope.share({k: each for k, each in everything if isinstance(each, LeasingPrefixes)})
        self._extending = scope.share(
            {k: each for k, each in everything if isinstance(each, ExtendingPrefixes)}
        )
        self._batches = {k: each for k, each in everything if isinstance(each, ExtendingPrefixBatches)}
        self._trailing = scope.share({k: each for k, each in everything if isinstance(each, TrailingPages)})

    def resolve(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        """The smallest answer, for a step is one span; None when nobody has an opinion.

        Raises:
            EngineError: an answer is longer than the walk, or negative.
        """
        agreed: CachedPrefix | None = None
        for key, resource in self._caching.of(node_name).items():
            answer = resource.resolve_cached_prefix(rid, node_name, graph_walk, inputs)
            if answer is None:
                continue
            if not 0 <= answer.length <= len(inputs):
                raise EngineError(
                    f"resource {key!r} serves {answer.length} tokens of request {rid!r}, "
                    f"whose walk {graph_walk!r} has {len(inputs)}"
                )
            agreed = answer if agreed is None else _smaller(agreed, answer)
        return agreed

    def apply(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        """Tell all what was agreed on, also those that had no opinion."""
        for resource in self._caching.of(node_name).values():
            resource.apply_cached_prefix(rid, node_name, graph_walk, inputs, prefix)

    def complete(self, rid: str, node_name: str, graph_walk: str) -> None:
        """Tell all that the walk was served whole."""
        for resource in self._caching.of(node_name).values():
            resource.complete_cached_walk(rid, node_name, graph_walk)

    def lease(self, rid: str, node_name: str, graph_walk: str) -> dict[str, list[int]]:
        """Key -> the pages that it holds for the request; all hold theirs, or none does."""
        leases: dict[str, list[int]] = {}
        with Unwind() as unwind:
            for key, resource in self._leasing.of(node_name).items():
                unwind.push(resource.release_cached_prefix, rid, node_name, graph_walk)
                if lease := resource.lease_cached_prefix(rid, node_name, graph_walk):
                    leases[key] = list(lease)
            unwind.release()
        return leases

    def adopt(
        self,
        rid: str,
        node_name: str,
        graph_walk: str,
        leases: Mapping[str, Sequence[int]],
        caught_up: bool,
    ) -> bool:
        """Hold what the leader holds, on all of `leases`; False, and on none, while one is behind.

        Raises:
            UnknownNameError: the leader holds pages of a resource that leases none here.
        """
        with Unwind() as unwind:
            for key, resource in self._leasing.pick(node_name, leases).items():
                unwind.push(resource.release_cached_prefix, rid, node_name, graph_walk)
                if not resource.adopt_cached_prefix(rid, node_name, graph_walk, leases[key], caught_up):
                    return False
            unwind.release()
        return True

    def release(self, rid: str, node_name: str, graph_walk: str) -> None:
        """All give back what they hold, each one tried."""
        with Unwind() as unwind:
            for resource in self._leasing.of(node_name).values():
                unwind.push(resource.release_cached_prefix, rid, node_name, graph_walk)

    def chain_keys(self, node_name: str | None) -> list[str]:
        """Those that have a chain to extend right now."""
        return [key for key, each in self._extending.of(node_name).items() if each.prefix_cache_open]

    def extend(
        self,
        rid: str,
        node_name: str,
        graph_walk: str,
        outputs: Sequence[int],
        keys: Collection[str] | None,
    ) -> None:
        """Offer one request's sampled tokens to `keys`, by default to those with an open chain."""
        chosen = self.chain_keys(node_name) if keys is None else keys
        for resource in self._extending.pick(node_name, chosen).values():
            resource.extend_prefix_chain(rid, node_name, graph_walk, outputs)

    def extend_batch(
        self,
        request_ids: Sequence[str],
        node_name: str,
        walk_of: WalkOf,
        host_rows: Sequence[Sequence[int]],
        outputs: Mapping[str, Sequence[int]],
        keys: Collection[str],
    ) -> None:
        """Offer a step's sampled tokens: the rows at once where it can be, else those that a request has.

        Raises:
            EngineError: there is not one row for each request.
        """
        if len(host_rows) != len(request_ids):
            raise EngineError(f"expected a row for each of {len(request_ids)} requests, got {len(host_rows)}")
        for key, resource in self._extending.pick(node_name, keys).items():
            if key in self._batches:
                self._batches[key].extend_prefix_chain_batch(request_ids, node_name, walk_of, host_rows)
                continue
            for rid in request_ids:
                if rid in outputs:
                    resource.extend_prefix_chain(rid, node_name, walk_of(rid), outputs[rid])

    def trails(self, node_name: str) -> dict[str, tuple[int, int]]:
        """Key -> its trail."""
        return {key: each.page_trail() for key, each in self._trailing.of(node_name).items()}


def walk_lookup(walk_of: str | Mapping[str, str] | Callable[[str], str]) -> WalkOf:
    """One walk for all requests, or each one's own, as a function."""
    if isinstance(walk_of, str):
        return lambda _: walk_of
    return walk_of.__getitem__ if isinstance(walk_of, Mapping) else walk_of


def _smaller(one: CachedPrefix, two: CachedPrefix) -> CachedPrefix:
    return CachedPrefix(min(one.length, two.length), one.whole and two.whole)
