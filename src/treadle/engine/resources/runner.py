"""Drives resources through the cycle of a step, and is all that an engine needs to know of them.

The runner is blind to kinds. It keeps the order (dependencies first), the scope (a node's own
resources), and the promise: a step is admitted by all or reserves nothing, a request is open on all
or on none. Its parts tell one story each: `cycle` a step, `plan_ahead` the step before it is due,
`publishing` what other nodes are told, `prefix_cache` what need not be computed, `marks` what a
profiler sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from treadle.engine.resources.cycle import Cycle
from treadle.engine.resources.marks import NvtxMark, cuda_ranges, marked, meter_of_spans
from treadle.engine.resources.plan_ahead import PlanAhead
from treadle.engine.resources.prefix_cache import PrefixCache, walk_lookup
from treadle.engine.resources.protocols import Capturing
from treadle.engine.resources.publishing import Publication, walks
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.scope import Scope
from treadle.engine.resources.step import CachedPrefix, FullAdmitOutcome, PublishedInfo, SubmoduleStep
from treadle.kernel import arrange

if TYPE_CHECKING:
    from treadle.telemetry import UnitMeter


class Dependent(Protocol):
    """A built resource, or the `NodeResourceSpec` that a deployment declares before one is built."""

    @property
    def depends_on(self) -> Collection[str]:
        """Keys that come before this one."""


def topo_sort(resources: Mapping[str, Dependent]) -> tuple[str, ...]:
    """Keys in dependency order, layer by layer, ties sorted.

    Raises:
        GraphError: also a ValueError; an unknown key, a self dependency or a cycle, by name.
    """
    return arrange({key: resource.depends_on for key, resource in resources.items()})


class StepRunner:
    """Drives `resources` through each step, by one thread at a time.

    Where a method takes `node_name`, only that node's resources are asked; None means all. Where one takes
    `graph_walk` and `request_walks`, each request is in its own walk, or else in the one of the step.

    Args:
        resources: key -> resource.
        node_resources: node name -> keys of the resources it owns; None when there is one node,
            which owns all.
        enable_nvtx: mark each verb of each resource for a profiler: as NVTX ranges where torch sees a GPU,
            else as spans of `meter`.

    Raises:
        GraphError: the dependencies cannot be put in order, or a resource plans ahead and one that it
            depends on does not.
        UnknownNameError: a node owns a key that is no resource. In a method: a node that the map does not
            list, or a step or an override that names a key that is no resource; nothing was called.
    """

    def __init__(
        self,
        resources: Mapping[str, Resource],
        node_resources: Mapping[str, Collection[str]] | None = None,
        enable_nvtx: bool = False,
    ) -> None:
        self._scope = Scope(resources, topo_sort(resources), node_resources)
        self._keys = self._scope.share(self._scope.resources)
        self._meter, driven = _driven(self._scope.resources, enable_nvtx)
        self._cycle = Cycle(self._scope, driven)
        self._steps = PlanAhead(self._cycle, driven)
        self._publication = Publication(self._scope)
        self._prefixes = PrefixCache(self._scope)
        self._capturing = self._scope.share(
            {key: each for key, each in resources.items() if isinstance(each, Capturing)}
        )

    @property
    def resources(self) -> Mapping[str, Resource]:
        """Key -> resource, read only."""
        return self._scope.resources

    @property
    def order(self) -> tuple[str, ...]:
        """The keys in the order in which every sweep visits them."""
        return tuple(self._scope.resources)

    @property
    def meter(self) -> UnitMeter | None:
        """What keeps the marks as spans; None without marks, or where NVTX takes them."""
        return self._meter

    def keys_of(self, node_name: str | None = None) -> tuple[str, ...]:
        """The keys that a node owns, in order."""
        return tuple(self._keys.of(node_name))

    def check_integrity(self) -> None:
        """Ask every resource to prove its sums; for tests and idle moments."""
        for resource in self._scope.resources.values():
            resource.check_integrity()

    def ingest_request(self, rid: str, overrides: Mapping[str, object] | None = None) -> None:
        """Open state for a request on all resources, or on none; a live request is left as it is.

        Args:
            rid: the request.
            overrides: resource key -> what only that resource gets to see.

        Raises:
            EngineError: a padding row has that name.
        """
        self._cycle.ingest(rid, overrides or {})

    def ingest_capture_row(self, rid: str) -> None:
        """Open a padding row for captured steps on all resources, or on none; it claims nothing.

        Raises:
            EngineError: a request has that name.
        """
        self._cycle.ingest_capture_row(rid)

    def remove_request(self, rid: str) -> None:
        """Drop a request from all resources, each one tried; safe for one that is unknown or half open."""
        self._steps.remove(rid)

    def admit(self, step: SubmoduleStep) -> FullAdmitOutcome:
        """Reserve capacity for a step; at the first refusal give back everything it reserved."""
        return self._steps.admit(step)

    def rollback_admit(self, step: SubmoduleStep) -> None:
        """Give back what an admitted step reserved; a committed step has nothing to give back.

        Each declared resource is tried; when some raise, the first error is raised, with the others as notes.
        """
        self._steps.rollback(step)

    def plan(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan in dependency order, each result filed in the context before the next one plans."""
        return self._steps.plan(step)

    def commit(self, step: SubmoduleStep) -> None:
        """Record consumption, after the forward pass was issued."""
        self._steps.commit(step)

    @property
    def staged(self) -> bool:
        """A step is reserved or planned ahead, and not yet promoted."""
        return self._steps.staged

    def pre_admit(self, step: SubmoduleStep) -> FullAdmitOutcome:
        """Reserve one step ahead, on those resources that plan ahead; unwound on refusal as `admit` is.

        What came before for the same requests has committed. The later `admit` covers the other resources.
        """
        return self._steps.pre_admit(step)

    def pre_plan(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan one step ahead, on those resources that plan ahead.

        Results are filed as by `plan`, for the dependents among them. The later `plan` promotes them when it
        is for a step that is declared alike; for any other the stage is dropped everywhere first.
        """
        return self._steps.pre_plan(step)

    def clear_preplan(self) -> None:
        """Drop what is staged, on every resource; what live steps reserved stays."""
        self._steps.clear()

    def admit_retrieve(
        self,
        rid: str,
        node_name: str,
        graph_walk: str,
        published: Mapping[str, PublishedInfo] | None = None,
    ) -> FullAdmitOutcome:
        """Bring published state in; not ready while transfers fly; the first that fails ends it, named.

        Cheap, and repeated until it is ready.
        """
        return self._publication.retrieve(rid, node_name, graph_walk, published or {})

    def publish(
        self,
        request_ids: Sequence[str],
        node_name: str | None = None,
        graph_walk: str | None = None,
        request_walks: Mapping[str, str] | None = None,
    ) -> dict[str, dict[str, PublishedInfo]]:
        """Request -> key -> what that resource tells other nodes; pairs with `admit_retrieve`."""
        return self._publication.publish(request_ids, node_name, walks(graph_walk, request_walks))

    def publish_after_stop(
        self,
        request_ids: Sequence[str],
        node_name: str | None = None,
        graph_walk: str | None = None,
        request_walks: Mapping[str, str] | None = None,
    ) -> dict[str, dict[str, PublishedInfo]]:
        """As `publish`, of the resources that speak when a loop has stopped."""
        return self._publication.publish_after_stop(request_ids, node_name, walks(graph_walk, request_walks))

    def publish_snapshot(
        self,
        request_ids: Sequence[str],
        node_name: str | None = None,
        graph_walk: str | None = None,
        request_walks: Mapping[str, str] | None = None,
    ) -> dict[str, dict[str, object]]:
        """`publish`, put off: what each publisher noted; a request of which nothing is told has no entry."""
        return self._publication.snapshots(request_ids, node_name, walks(graph_walk, request_walks))

    def publish_from_snapshots(
        self,
        snapshots: Mapping[str, Mapping[str, object]],
        request_ids: Sequence[str],
        node_name: str | None = None,
        graph_walk: str | None = None,
        request_walks: Mapping[str, str] | None = None,
    ) -> dict[str, dict[str, PublishedInfo]]:
        """What `publish` would have said when the snapshots were taken; no entry where there is none."""
        return self._publication.from_snapshots(
            snapshots, request_ids, node_name, walks(graph_walk, request_walks)
        )

    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        """The longest prefix of this walk that every resource of the node can serve.

        The smallest answer wins, for a step is one span. No opinion is not an answer of 0.
        """
        return self._prefixes.resolve(rid, node_name, graph_walk, inputs)

    def apply_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        """Give every resource the agreed prefix, with the untrimmed inputs."""
        self._prefixes.apply(rid, node_name, graph_walk, inputs, prefix)

    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        """Tell the node's resources that the cache served this walk whole."""
        self._prefixes.complete(rid, node_name, graph_walk)

    def lease_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> dict[str, list[int]]:
        """Key -> the pages that it holds for this request's prefix, for other ranks to adopt."""
        return self._prefixes.lease(rid, node_name, graph_walk)

    def adopt_cached_prefix(
        self,
        rid: str,
        node_name: str,
        graph_walk: str,
        leases: Mapping[str, Sequence[int]],
        caught_up: bool,
    ) -> bool:
        """Hold the very pages that the leader leased; False, holding none, while they are not here yet.

        Args:
            rid: the request.
            node_name: the node.
            graph_walk: the walk.
            leases: what `lease_cached_prefix` gave on the leader.
            caught_up: this rank's `page_trails` are those that the leader had when it leased; lacking a page
                is then an error, for it will not come.
        """
        return self._prefixes.adopt(rid, node_name, graph_walk, leases, caught_up)

    def release_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> None:
        """Give back what was leased or adopted, for a walk that will not run on it."""
        self._prefixes.release(rid, node_name, graph_walk)

    def page_trails(self, node_name: str) -> dict[str, tuple[int, int]]:
        """Key -> (count, digest): two ranks with the same trails have allocated alike."""
        return self._prefixes.trails(node_name)

    def prefix_chain_keys(self, node_name: str | None) -> list[str]:
        """The node's resources with a prefix cache open right now; empty in the common case."""
        return self._prefixes.chain_keys(node_name)

    def extend_prefix_chains(
        self,
        rid: str,
        node_name: str,
        graph_walk: str,
        outputs: Sequence[int],
        keys: Collection[str] | None = None,
    ) -> None:
        """Offer this step's sampled tokens to the node's `keys`, by default to all with an open chain."""
        self._prefixes.extend(rid, node_name, graph_walk, outputs, keys)

    def extend_prefix_chains_batch(
        self,
        request_ids: Sequence[str],
        node_name: str,
        walk_of: str | Mapping[str, str] | Callable[[str], str],
        host_rows: Sequence[Sequence[int]],
        outputs: Mapping[str, Sequence[int]],
        keys: Collection[str],
    ) -> None:
        """`extend_prefix_chains` for a step.

        Args:
            request_ids: the step's requests.
            node_name: the node.
            walk_of: the walk of them all, or each one's own.
            host_rows: each request's sampled tokens, for resources that take all rows in one call.
            outputs: request -> its sampled tokens, for the others; one without an entry is not offered.
            keys: what `prefix_chain_keys` gave.
        """
        self._prefixes.extend_batch(request_ids, node_name, walk_lookup(walk_of), host_rows, outputs, keys)

    def build_accelerator_graph_buffers(
        self, slots: int, max_bs: int, max_seq_len: int, node_name: str | None = None
    ) -> None:
        """Have the buffers allocated that captured steps read; before any capture, and they only grow."""
        for resource in self._capturing.of(node_name).values():
            resource.build_accelerator_graph_buffers(slots, max_bs, max_seq_len)


def _driven(
    resources: Mapping[str, Resource], enable_nvtx: bool
) -> tuple[UnitMeter | None, Mapping[str, Resource]]:
    if not enable_nvtx:
        return None, resources
    if (ranges := cuda_ranges()) is not None:
        return None, marked(resources, lambda name: NvtxMark(name, ranges))
    meter = meter_of_spans()
    return meter, marked(resources, meter.stage)
