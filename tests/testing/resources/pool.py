"""A resource with every ability that the check tries, small enough to be right by inspection."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from treadle.engine.resources import AdmitOutcome, Refusal, ResourceStep, StepContext
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import NO_ROOM, READY, PublishedInfo
from treadle.errors import EngineError

SIZE = 2  # tokens of a slot


@dataclass
class Row:
    """Slots in the order of the tokens; the last `taken` are those of a step that has not committed."""

    slots: list[int] = field(default_factory=list)
    stored: int = 0
    taken: int = 0
    padding: bool = False
    away: int | None = None


@dataclass(frozen=True)
class Told(PublishedInfo):
    tokens: int
    slots: tuple[int, ...]


class Pool:
    """`total` slots of two tokens each, the lowest free one first."""

    depends_on: Collection[str] = ()

    def __init__(self, total: int = 6) -> None:
        self.total = total
        self.free = list(range(total - 1, -1, -1))
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
        return Told(row.stored, tuple(row.slots)) if row is not None and row.stored else None

    def publish_snapshot(self, rid: str, node_name: str | None, graph_walk: str | None) -> object | None:
        told = self.publish(rid, node_name, graph_walk)
        return None if told is None else (told.tokens, told.slots)

    def publish_from_snapshot(
        self, rid: str, snapshot: object, node_name: str | None, graph_walk: str | None
    ) -> Told | None:
        assert isinstance(snapshot, tuple)
        return Told(snapshot[0], tuple(snapshot[1]))

    def build_accelerator_graph_buffers(self, slots: int, max_bs: int, max_seq_len: int) -> None:
        """Has none."""

    def can_offload(self, rid: str) -> bool:
        row = self.rows.get(rid)
        return row is not None and row.away is None and row.stored > 0 and not row.taken

    def offload(self, rid: str) -> int:
        if not self.can_offload(rid):
            raise EngineError(f"request {rid!r} cannot be offloaded now")
        row = self.rows[rid]
        row.away = len(row.slots)
        self.free.extend(reversed(row.slots))
        row.slots.clear()
        return row.away

    def is_offloaded(self, rid: str) -> bool:
        return rid in self.rows and self.rows[rid].away is not None

    def can_reload(self, rid: str) -> bool:
        away = self.rows[rid].away
        return away is not None and away <= len(self.free)

    def reload(self, rid: str) -> None:
        row = self.rows[rid]
        if row.away is None:
            raise EngineError(f"request {rid!r} is not away")
        row.slots = [self.free.pop() for _ in range(row.away)]
        row.away = None

    def check_integrity(self) -> None:
        """Leaves the proof to those who look at `holdings`."""

    def holdings(self) -> Holdings:
        held: Mapping[str, tuple[int, ...]] = {rid: tuple(row.slots) for rid, row in self.rows.items()}
        return Holdings(tuple(self.free), held)

    def missing(self, rid: str, span: int) -> int:
        row = self.rows[rid]
        return max(0, -(-(row.stored + span) // SIZE) - len(row.slots))
