"""A resource with a prefix cache, small enough to be right by inspection: a unit for each token."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from treadle.engine.resources import AdmitOutcome, ResourceStep, StepContext
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import NO_ROOM, READY, CachedPrefix
from treadle.errors import EngineError

WHOLE = "whole"
"""The walk whose last token need not be computed."""


@dataclass
class Row:
    """Units in the order of the tokens, the last `taken` not committed; those of a lease; the text."""

    units: list[int] = field(default_factory=list)
    taken: int = 0
    lease: list[int] = field(default_factory=list)
    text: tuple[int, ...] = ()


class Shelf:
    """`total` units; those of a known text are kept for others that begin alike, until there is no room."""

    depends_on: Collection[str] = ()

    def __init__(self, total: int = 8) -> None:
        self.free = list(range(total - 1, -1, -1))
        self.owners = [0] * total
        self.kept: dict[tuple[int, ...], int] = {}
        self.rows: dict[str, Row] = {}
        self.moves, self.digest = 0, 0

    def ingest(self, rid: str, overrides: object | None) -> None:
        self.rows[rid] = Row()

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        spans = {each.request_id: each.span for each in step.rows if not self.rows[each.request_id].taken}
        lacking = sum(spans.values()) - len(self.free)
        idle = [text for text, unit in self.kept.items() if self.owners[unit] == 1]
        if lacking > len(idle):
            return NO_ROOM
        for text in idle[len(idle) - max(0, lacking) :]:
            self.drop([self.kept.pop(text)])
        for rid, span in spans.items():
            new = [self.free.pop() for _ in range(span)]
            self.own(new)
            self.rows[rid].units += new
            self.rows[rid].taken = span
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        for row in [
            self.rows[each.request_id] for each in reversed(step.rows) if each.request_id in self.rows
        ]:
            taken, row.taken = row.taken, 0
            self.drop(row.units[len(row.units) - taken :])
            del row.units[len(row.units) - taken :]

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        return {each.request_id: tuple(self.rows[each.request_id].units) for each in step.rows}

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        for row in (self.rows[each.request_id] for each in step.rows):
            row.taken = 0
            for at, unit in enumerate(row.units[: len(row.text)], 1):
                if row.text[:at] not in self.kept and unit not in self.kept.values():
                    self.kept[row.text[:at]] = unit
                    self.own([unit])

    def remove(self, rid: str) -> None:
        if (row := self.rows.pop(rid, None)) is not None:
            self.drop([*row.units, *row.lease])

    def resolve_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int]
    ) -> CachedPrefix | None:
        row = self.rows.get(rid)
        if row is None or row.units:
            return None
        row.text = tuple(inputs)
        served = row.text if graph_walk == WHOLE else row.text[:-1]
        if not row.lease:
            self.hold(row, self.found(served))
        length = min(len(row.lease), len(served))
        return CachedPrefix(length, length == len(inputs)) if length else None

    def apply_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, inputs: Sequence[int], prefix: CachedPrefix
    ) -> None:
        row = self.rows[rid]
        row.text = tuple(inputs)
        if not prefix.whole:
            self.serve(row, prefix.length)

    def complete_cached_walk(self, rid: str, node_name: str, graph_walk: str) -> None:
        self.serve(self.rows[rid], len(self.rows[rid].text))

    def lease_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> Sequence[int]:
        return list(self.rows[rid].lease)

    def adopt_cached_prefix(
        self, rid: str, node_name: str, graph_walk: str, lease: Sequence[int], caught_up: bool
    ) -> bool:
        row = self.rows[rid]
        if row.lease == list(lease):
            return True
        if set(lease) <= set(self.kept.values()):
            self.hold(row, lease)
            return True
        if caught_up:
            raise EngineError("the ranks do not allocate alike")
        return False

    def release_cached_prefix(self, rid: str, node_name: str, graph_walk: str) -> None:
        if rid in self.rows:
            self.hold(self.rows[rid], ())

    def page_trail(self) -> tuple[int, int]:
        return self.moves, self.digest

    def check_integrity(self) -> None:
        """Leaves the proof to those who look at `holdings`."""

    def holdings(self) -> Holdings:
        held = {rid: (*row.units, *row.lease) for rid, row in self.rows.items()}
        return Holdings(tuple(self.free), held, frozenset(self.kept.values()))

    def found(self, text: Sequence[int]) -> list[int]:
        found: list[int] = []
        while len(found) < len(text) and (unit := self.kept.get(tuple(text[: len(found) + 1]))) is not None:
            found.append(unit)
        return found

    def hold(self, row: Row, units: Sequence[int]) -> None:
        self.own(units)
        self.drop(row.lease)
        row.lease = list(units)

    def serve(self, row: Row, length: int) -> None:
        row.units, rest, row.lease = row.lease[:length], row.lease[length:], []
        self.drop(rest)

    def own(self, units: Iterable[int]) -> None:
        for unit in units:
            self.owners[unit] += 1
            self.note(unit)

    def drop(self, units: Sequence[int]) -> None:
        for unit in reversed(units):
            self.owners[unit] -= 1
            self.note(unit)
            if not self.owners[unit]:
                self.free.append(unit)

    def note(self, unit: int) -> None:
        self.moves += 1
        self.digest = crc32(b"%d:%d" % (unit, self.owners[unit]), self.digest)
