"""A resource with every ability that the check tries, small enough to be right by inspection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from treadle.engine.resources import AdmitOutcome, Refusal, ResourceStep, StepContext, SubmoduleStep
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import NO_ROOM, READY, PublishedInfo
from treadle.errors import EngineError

SIZE = 2  # tokens of a slot
PENDING = AdmitOutcome(ok=True, ready=False)


@dataclass
class Row:
    """Slots in the order of the tokens; the last `taken` are those of a step that has not committed."""

    slots: list[int] = field(default_factory=list)
    stored: int = 0
    taken: int = 0
    padding: bool = False
    away: list[list[str]] | None = None
    flying: Told | None = None
    arrived: Told | None = None


@dataclass(frozen=True)
class Told(PublishedInfo):
    tokens: int
    slots: tuple[int, ...]
    content: tuple[str, ...] = ()


class Pool:
    """`total` slots of two tokens each, the lowest free one first."""

    depends_on: Collection[str] = ()

    def __init__(self, total: int = 6) -> None:
        self.total = total
        self.free = list(range(total - 1, -1, -1))
        self.content = [[""] * SIZE for _ in range(total)]
        self.rows: dict[str, Row] = {}
        self.staged: list[str] = []
        self.pending: dict[str, tuple[int, ...]] | None = None

    def ingest(self, rid: str, overrides: object | None) -> None:
        self.rows[rid] = Row()

    def ingest_capture_row(self, rid: str) -> None:
        self.rows[rid] = Row(padding=True)

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        if any(self.rows[segment.request_id].away is not None for segment in step.rows):
            return AdmitOutcome(ok=False, ready=False, reason=Refusal.OFFLOADING)
        missing = {
            segment.request_id: self.missing(segment.request_id, segment.span) for segment in step.rows
        }
        if sum(missing.values()) > len(self.free):
            return NO_ROOM
        for rid, count in missing.items():
            self.take(self.rows[rid], count)
        self.staged = list(missing) if ctx.is_preplan else []
        return READY

    def take(self, row: Row, count: int) -> None:
        row.slots += [self.free.pop() for _ in range(count)]
        row.taken += count

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        self.give_back([segment.request_id for segment in step.rows])

    def give_back(self, rids: Sequence[str]) -> None:
        for row in [self.rows[rid] for rid in reversed(rids) if rid in self.rows]:
            while row.taken:
                self.free.append(row.slots.pop())
                row.taken -= 1

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        planned = {segment.request_id: tuple(self.rows[segment.request_id].slots) for segment in step.rows}
        if ctx.is_preplan:
            self.pending = planned
        return planned

    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        planned, self.pending, self.staged = self.pending, None, []
        return planned

    def clear_preplan(self) -> None:
        staged, self.pending, self.staged = self.staged, None, []
        self.give_back(staged)

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        for segment in step.rows:
            row = self.rows[segment.request_id]
            row.stored += segment.span
            row.taken = 0

    def remove(self, rid: str) -> None:
        if (row := self.rows.pop(rid, None)) is not None:
            self.free.extend(reversed(row.slots))

    def publish(self, rid: str, node_name: str | None, graph_walk: str | None) -> Told | None:
        row = self.rows.get(rid)
        if row is None or not row.stored or row.away is not None:
            return None
        return Told(row.stored, tuple(row.slots[: -(-row.stored // SIZE)]), tuple(self.seen(rid)))

    def publish_snapshot(self, rid: str, node_name: str | None, graph_walk: str | None) -> object | None:
        told = self.publish(rid, node_name, graph_walk)
        return None if told is None else (told.tokens, told.slots, told.content)

    def publish_snapshot_batch(
        self, request_ids: Sequence[str], node_name: str | None, walk_of: Callable[[str], str | None]
    ) -> Mapping[str, object]:
        taken = {rid: self.publish_snapshot(rid, node_name, walk_of(rid)) for rid in request_ids}
        return {rid: snapshot for rid, snapshot in taken.items() if snapshot is not None}

    def publish_from_snapshot(
        self, rid: str, snapshot: object, node_name: str | None, graph_walk: str | None
    ) -> Told | None:
        assert isinstance(snapshot, tuple)
        return Told(snapshot[0], tuple(snapshot[1]), snapshot[2])

    def publish_after_stop(self, rid: str, node_name: str | None, graph_walk: str | None) -> Told | None:
        return self.publish(rid, node_name, graph_walk)

    def admit_retrieve(
        self, rid: str, node_name: str, graph_walk: str, published: PublishedInfo | None
    ) -> AdmitOutcome:
        row = self.rows[rid]
        if not isinstance(published, Told) or row.arrived == published:
            return READY
        if row.flying is None:
            count = len(published.slots)
            if count > len(self.free):
                return NO_ROOM
            row.slots += [self.free.pop() for _ in range(count)]
            row.flying = published
            return PENDING
        self.arrive(row, published)
        return READY

    def arrive(self, row: Row, told: Told) -> None:
        row.stored, row.arrived, row.flying = told.tokens, told, None
        self.write(row, 0, told.content)

    def compute(self, step: SubmoduleStep) -> None:
        """Each token leaves its name behind."""
        for rid, span, _ in step.segments:
            row = self.rows[rid]
            self.write(row, row.stored, [f"{rid}{row.stored + at}" for at in range(span)])

    def write(self, row: Row, start: int, content: Sequence[str]) -> None:
        for at, name in enumerate(content, start):
            self.content[row.slots[at // SIZE]][at % SIZE] = name

    def seen(self, rid: str, label: str = "main") -> list[str]:
        row = self.rows[rid]
        return [self.content[row.slots[at // SIZE]][at % SIZE] for at in range(row.stored)]

    def build_accelerator_graph_buffers(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        """Has none."""

    def can_offload(self, rid: str) -> bool:
        row = self.rows.get(rid)
        return row is not None and row.away is None and row.stored > 0 and not row.taken and not row.flying

    def offload(self, rid: str) -> int:
        if not self.can_offload(rid):
            raise EngineError(f"request {rid!r} cannot be offloaded now")
        row = self.rows[rid]
        row.away = [list(self.content[slot]) for slot in row.slots]
        self.free.extend(reversed(row.slots))
        row.slots.clear()
        return len(row.away)

    def is_offloaded(self, rid: str) -> bool:
        return rid in self.rows and self.rows[rid].away is not None

    def can_reload(self, rid: str) -> bool:
        away = self.rows[rid].away
        return away is not None and len(away) <= len(self.free)

    def reload(self, rid: str) -> None:
        row = self.rows[rid]
        if row.away is None:
            raise EngineError(f"request {rid!r} is not away")
        row.slots = [self.free.pop() for _ in row.away]
        for slot, content in zip(row.slots, row.away, strict=True):
            self.content[slot] = content
        row.away = None

    def check_integrity(self) -> None:
        """Leaves the proof to those who look at `holdings`."""

    def holdings(self) -> Holdings:
        held: Mapping[str, tuple[int, ...]] = {rid: tuple(row.slots) for rid, row in self.rows.items()}
        return Holdings(tuple(self.free), held)

    def missing(self, rid: str, span: int) -> int:
        row = self.rows[rid]
        return max(0, -(-(row.stored + span) // SIZE) - len(row.slots))
