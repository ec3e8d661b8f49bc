"""What a resource may do beyond the verbs of `Resource`, each ability a protocol of its own.

The runner looks once, when it is built, which resource has which ability; a step never asks. A resource
has an ability by having its methods. Those that a resource lacks cost it nothing:

    PlansAhead                 is reserved and planned one step ahead
    Publishing                 tells other nodes about a request, now
    PublishingSnapshots        notes what it would publish, and publishes that later
    PublishingSnapshotBatches  notes it for all requests of a step in one call
    PublishingAfterStop        tells other nodes when a loop has stopped
    Retrieving                 brings in what another node published
    CachingPrefixes            has a say in which prefix of a walk need not be computed
    LeasingPrefixes            holds the pages of a cached prefix, the same on every rank
    ExtendingPrefixes          makes sampled tokens a prefix for the next turn
    ExtendingPrefixBatches     does so for all requests of a step in one call
    TrailingPages              proves that lock-step ranks allocate alike
    Capturing                  has padding rows, and buffers that a captured graph reads
    Offloading                 moves a request's state away and back
    Accounting                 shows who has which units of its pool

Everywhere `rid` is a request, `node_name` the node on whose behalf is asked, `graph_walk` the walk that the
request is in. Unknown requests are no error where nothing is changed: the answer is None, or nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from treadle.engine.resources.step import (
    AdmitOutcome,
    CachedPrefix,
    PublishedInfo,
    ResourceStep,
    StepContext,
)

WalkOf = Callable[[str], str]
"""Request -> its walk."""


@runtime_checkable
class PlansAhead(Protocol):
    """Can be reserved and planned one step ahead, while the step before it still computes.

    `admit` and `plan` are then called with `ctx.is_preplan` set, and what they reserve and plan is *staged*:

    - `admit` with `is_preplan` reserves and notes what this stage reserved. The `admit` of the same step
      without it reserves nothing more, and what was staged is the live step's from then on.
    - `plan` with `is_preplan` writes to a pending place, never to one that the step in flight may still read.

    There is one stage at most: the runner drops it before it makes another, and before it admits, plans or
    commits a step that does not match. Whatever steps came before, for the same requests, have committed
    when a step is staged. The resources that one depends on must plan ahead too.
    """

    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        """Make the staged plan the live one and return it: what `plan` would return for the admitted step."""

    def clear_preplan(self) -> None:
        """Drop the staged plan, and give back what only the stage reserved, in reverse.

        What a live step reserved stays, also when that step was staged and then admitted. Safe when
        nothing is staged, and for rows that are gone.
        """


@runtime_checkable
class Publishing(Protocol):
    """Tells other nodes about a request."""

    def publish(self, rid: str, node_name: str | None, graph_walk: str | None) -> PublishedInfo | None:
        """What is to be known elsewhere at this moment, or None. Changes nothing.

        Asked outside of a step too, then without a node and a walk.
        """


@runtime_checkable
class PublishingSnapshots(Publishing, Protocol):
    """Can put off the work of publishing. For others the snapshot is the info itself."""

    def publish_snapshot(self, rid: str, node_name: str | None, graph_walk: str | None) -> object | None:
        """The little that is needed to publish this moment later; None when there is nothing to publish.

        A copy: later steps and the removal of the request do not change it.
        """

    def publish_from_snapshot(
        self, rid: str, snapshot: object, node_name: str | None, graph_walk: str | None
    ) -> PublishedInfo | None:
        """What `publish` would have said when the snapshot was taken, by this resource."""


@runtime_checkable
class PublishingSnapshotBatches(PublishingSnapshots, Protocol):
    """Takes the snapshots of a step in one call."""

    def publish_snapshot_batch(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: Callable[[str], str | None]
    ) -> Mapping[str, object]:
        """`publish_snapshot` of each request; one with nothing to publish has no entry."""


@runtime_checkable
class PublishingAfterStop(Protocol):
    """Tells other nodes about a request when the loop that it went through has stopped."""

    def publish_after_stop(
        self, rid: str, node_name: str | None, graph_walk: str | None
    ) -> PublishedInfo | None:
        """What is to be known elsewhere now that no more steps come, or None. Changes nothing."""


@runtime_checkable
class Retrieving(Protocol):
    """Brings in what another node published."""

    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        """Begin to bring in, or say how far it is: not ready while a transfer flies.

        Asked again in each turn of the scheduler until ready: cheap, and the second time begins nothing
        new. `published` is None where nothing was published for this resource.
        """


@runtime_checkable
class CachingPrefixes(Protocol):
    """Has a say in which prefix of a walk need not be computed.

    `inputs` are the walk's tokens, never trimmed; a slot that is no token has a number that stands for its
    content.
    """

    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        """The longest prefix that this resource can serve; None when it has no opinion, which is not 0.

        Repeatable: until the prefix is applied or given back, the same answer, and what it holds for the
        answer is held once.
        """

    def apply_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        """The prefix that all agreed on, maybe shorter than this one's answer: hold no more than that.

        The next step of the request begins behind it.
        """

    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        """The walk was served whole and does not run: be as if it had run and committed."""


@runtime_checkable
class LeasingPrefixes(Protocol):
    """Holds the pages of a cached prefix for a request, the same ones on every rank that steps in lock-step.

    The leader leases and tells the others its page ids, who adopt them. A lease ends when the request's step
    is admitted and takes it over, when it is released, or with the request.
    """

    def lease_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> Sequence[int]:
        """Hold the pages of the agreed prefix and return their ids, in order; empty when there are none.

        Again for the same request: the same ids, held once.
        """

    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        """Hold the very pages that the leader holds. False, holding nothing, when they are not here yet.

        Args:
            caught_up: this rank has allocated and stored all that the leader had when it leased.

        Raises:
            EngineError: it has caught up, and the pages are still not here: the ranks do not allocate alike.
        """

    def release_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> None:
        """Give the leased pages back, for a walk that will not run on them. Safe without a lease."""


@runtime_checkable
class ExtendingPrefixes(Protocol):
    """Makes what a request generates a prefix that its next turn can match."""

    @property
    def prefix_cache_open(self) -> bool:
        """Whether there is anything to extend right now."""

    def extend_prefix_chain(self, rid: str, node_name: str, graph_walk: str, outputs: Sequence[int]) -> None:
        """The tokens that this step sampled for the request, which the next one stores."""


@runtime_checkable
class ExtendingPrefixBatches(ExtendingPrefixes, Protocol):
    """Takes the sampled tokens of a step in one call."""

    def extend_prefix_chain_batch(
        self,
        request_ids: Sequence[str],
        node_name: str,
        walk_of: WalkOf,
        host_rows: Sequence[Sequence[int]],
    ) -> None:
        """`extend_prefix_chain` of each request, whose tokens stand in the row at its place."""


@runtime_checkable
class TrailingPages(Protocol):
    """Proves that it allocates as its twins on the other ranks do."""

    def page_trail(self) -> tuple[int, int]:
        """How many times pages were taken or given back, and a digest of which, in order.

        Two twins with the same trail hold the same pages for the same requests. The digest is the same
        in every process: no `hash` of a string.
        """


@runtime_checkable
class Capturing(Protocol):
    """Takes part in steps of a fixed shape, which are captured once and replayed."""

    def ingest_capture_row(self, rid: str) -> None:
        """Open a padding row: like `ingest` without overrides, and claiming nothing that requests need.

        All padding rows may share one place that nobody reads. A step reserves nothing for them.
        """

    def build_accelerator_graph_buffers(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        """Allocate the buffers that a replay reads, before any capture.

        They only grow: called again with less, nothing changes. For `slots` sets of at most `max_bs` rows
        (padding included) of at most `max_seq_len` stored tokens.
        """


@runtime_checkable
class Offloading(Protocol):
    """Moves a request's state to where it is out of the way, and back.

    While it is away, `admit` refuses a step that names the request with `Refusal.OFFLOADING`.
    """

    def can_offload(self, rid: str) -> bool:
        """Whether `offload` would move anything: something is stored, no step is under way, there is room."""

    def offload(self, rid: str) -> int:
        """Move the state away, and return how many pages (or slots) no request has any more.

        Raises:
            EngineError: not after `can_offload`.
        """

    def is_offloaded(self, rid: str) -> bool:
        """Whether the state is away."""

    def can_reload(self, rid: str) -> bool:
        """Whether `reload` would succeed now: the state is away, and there is room."""

    def reload(self, rid: str) -> None:
        """Bring the state back, value for value.

        Raises:
            EngineError: not after `can_reload`.
        """


class Holdings(NamedTuple):
    """Who has which units of a pool: pages, slots. Every unit is in one of the three.

    Attributes:
        free: nobody has them; the next one to be taken last.
        held: request -> its units, in its own order; one that has none may be left out.
        kept: not free even when no request has them, as what a cache keeps or a place for padding rows.
        shared: those that may be held by several requests.
    """

    free: tuple[int, ...]
    held: Mapping[str, tuple[int, ...]]
    kept: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()


@runtime_checkable
class Accounting(Protocol):
    """Shows who has what, so that others can prove its sums too; for tests and idle moments."""

    def holdings(self) -> Holdings:
        """A copy of who has what at this moment."""
