"""Resources that write down every call, and answer and raise as they are told."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from treadle.engine.resources import AdmitOutcome, ResourceStep, Segment, StepContext, SubmoduleStep
from treadle.engine.resources.step import READY, CachedPrefix, PublishedInfo

PENDING = AdmitOutcome(ok=True, ready=False)


class Stub:
    """The verbs of a resource."""

    def __init__(
        self,
        key: str,
        calls: list[str],
        *depends_on: str,
        answer: AdmitOutcome = READY,
        raises: Mapping[str, BaseException] | None = None,
    ) -> None:
        self.key = key
        self.calls = calls
        self.depends_on: Collection[str] = depends_on
        self.answer = answer
        self.raises = raises or {}
        self.overrides: dict[str, object] = {}
        self.filed: dict[str, object] = {}

    def call(self, verb: str, what: str = "") -> None:
        self.calls.append(f"{verb} {self.key}{what}")
        if verb in self.raises:
            raise self.raises[verb]

    def ingest(self, rid: str, overrides: object | None) -> None:
        self.call("ingest", f" {rid}")
        self.overrides[rid] = overrides

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        self.call("admit")
        return self.answer

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        self.call("rollback")

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        self.call("plan")
        self.filed = dict(ctx.plan_results)
        return f"plan of {self.key}"

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        self.call("commit")

    def remove(self, rid: str) -> None:
        self.call("remove", f" {rid}")

    def check_integrity(self) -> None:
        self.call("check")


class AheadStub(Stub):
    """Plans ahead."""

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        self.call("pre-admit" if ctx.is_preplan else "admit")
        return self.answer

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        self.call("pre-plan" if ctx.is_preplan else "plan")
        self.filed = dict(ctx.plan_results)
        return f"plan of {self.key}"

    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        self.call("promote")
        self.filed = dict(ctx.plan_results)
        return f"promoted plan of {self.key}"

    def clear_preplan(self) -> None:
        self.call("clear")


@dataclass(frozen=True)
class Info(PublishedInfo):
    text: str


class PublishingStub(Stub):
    """Tells what it was asked, unless it is to be silent about a request."""

    silent: Collection[str] = ()

    def publish(self, rid: str, node_name: str | None, graph_walk: str | None) -> Info | None:
        self.call("publish", f" {rid}")
        return None if rid in self.silent else Info(f"{self.key}: {rid} at {node_name} in {graph_walk}")


class SnapshotStub(PublishingStub):
    """Notes little, and tells it later."""

    def publish_snapshot(self, rid: str, node_name: str | None, graph_walk: str | None) -> object | None:
        self.call("snapshot", f" {rid}")
        return None if rid in self.silent else (rid, node_name, graph_walk)

    def publish_from_snapshot(
        self, rid: str, snapshot: object, node_name: str | None, graph_walk: str | None
    ) -> Info | None:
        assert isinstance(snapshot, tuple)
        return Info(f"{self.key}: {snapshot[0]} at {snapshot[1]} in {snapshot[2]}")


class SnapshotBatchStub(SnapshotStub):
    """Notes it for all requests at once."""

    def publish_snapshot_batch(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: Callable[[str], str | None]
    ) -> Mapping[str, object]:
        self.call("snapshots", " " + " ".join(request_ids))
        return {rid: (rid, node_name, walk_of(rid)) for rid in request_ids if rid not in self.silent}


class StopStub(Stub):
    """Tells when a loop has stopped."""

    def publish_after_stop(self, rid: str, node_name: str | None, graph_walk: str | None) -> Info | None:
        self.call("stop", f" {rid} {graph_walk}")
        return Info(f"{self.key}: {rid} stopped")


class RetrievingStub(Stub):
    """Brings in, and answers as it is told."""

    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        told = published.text if isinstance(published, Info) else "nothing"
        self.call("retrieve", f" {rid} {node_name} {graph_walk} {told}")
        return self.answer


class PrefixStub(Stub):
    """Has an opinion about prefixes, or none, and an open chain, or none."""

    opinion: CachedPrefix | None = None
    prefix_cache_open = True

    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        self.call("resolve", f" {rid} {node_name} {graph_walk} {list(inputs)}")
        return self.opinion

    def apply_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        self.call("apply", f" {rid} {node_name} {graph_walk} {list(inputs)} {prefix.length}")

    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        self.call("complete", f" {rid} {node_name} {graph_walk}")

    def extend_prefix_chain(self, rid: str, node_name: str, graph_walk: str, outputs: Sequence[int]) -> None:
        self.call("extend", f" {rid} {node_name} {graph_walk} {list(outputs)}")


class PrefixBatchStub(PrefixStub):
    """Takes all rows at once."""

    def extend_prefix_chain_batch(
        self,
        request_ids: Sequence[str],
        node_name: str,
        walk_of: Callable[[str], str],
        host_rows: Sequence[Sequence[int]],
    ) -> None:
        rows = [f"{rid} {walk_of(rid)} {list(row)}" for rid, row in zip(request_ids, host_rows, strict=True)]
        self.call("extend batch", f" {node_name}: " + ", ".join(rows))


class LeasingStub(Stub):
    """Holds pages for a request."""

    pages: Sequence[int] = ()
    here = True

    def lease_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> Sequence[int]:
        self.call("lease", f" {rid} {node_name} {graph_walk}")
        return self.pages

    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        self.call("adopt", f" {rid} {list(lease)} {caught_up}")
        return self.here

    def release_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> None:
        self.call("release", f" {rid}")

    def page_trail(self) -> tuple[int, int]:
        return len(self.pages), sum(self.pages)


class CapturingStub(Stub):
    """Has padding rows and static buffers."""

    def ingest_capture_row(self, rid: str) -> None:
        self.call("ingest row", f" {rid}")

    def build_accelerator_graph_buffers(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        self.call("build", f" {slots} {max_bs} {max_seq_len}")


def step_of(*keys: str, ctx: StepContext | None = None, rids: Sequence[str] = ("r",)) -> SubmoduleStep:
    """One token for each request, on each of the resources."""
    segments = tuple(Segment(rid, 1) for rid in rids)
    return SubmoduleStep({key: ResourceStep() for key in keys}, segments, ctx or StepContext())
