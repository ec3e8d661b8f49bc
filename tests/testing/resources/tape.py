"""A resource whose streams fork, small enough to be right by inspection: a unit for each token.

A unit is written once, so a fork shares the units of what it begins with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from treadle.engine.resources import AdmitOutcome, ResourceStep, StepContext, SubmoduleStep
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.step import NO_ROOM, READY

Name = tuple[str, str]
"""Request and label of a stream."""


@dataclass(frozen=True)
class TapeStep(ResourceStep):
    """What `forking` makes of a part."""

    before: tuple[Fork, ...] = ()
    after: tuple[Fork, ...] = ()


def forking(part: ResourceStep, before: Sequence[Fork], after: Sequence[Fork]) -> ResourceStep:
    return TapeStep(part.segments, tuple(before), tuple(after))


@dataclass
class Stream:
    """Units in the order of the tokens; the last `taken`, or all of a `born` one, are not committed."""

    units: list[int] = field(default_factory=list)
    taken: int = 0
    born: bool = False


class Tape:
    """`total` units."""

    depends_on: Collection[str] = ()

    def __init__(self, total: int = 10) -> None:
        self.free = list(range(total - 1, -1, -1))
        self.owners = [0] * total
        self.content = [""] * total
        self.streams: dict[Name, Stream] = {}

    def ingest(self, rid: str, overrides: object | None) -> None:
        self.streams[rid, "main"] = Stream()

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        assert isinstance(step, TapeStep)
        new = {(rid, label): span for rid, span, label in step.rows if not self.of((rid, label)).taken}
        if sum(new.values()) > len(self.free):
            return NO_ROOM
        for fork in step.before:
            if fork.target not in self.streams:
                self.fork(fork)
                self.streams[fork.target].born = True
        for name, span in new.items():
            units = [self.free.pop() for _ in range(span)]
            self.own(units)
            self.streams[name].units += units
            self.streams[name].taken = span
        return READY

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        assert isinstance(step, TapeStep)
        for rid, _, label in reversed(step.rows):
            stream = self.of((rid, label))
            taken, stream.taken = stream.taken, 0
            self.drop(stream.units[len(stream.units) - taken :])
            del stream.units[len(stream.units) - taken :]
        for fork in reversed(step.before):
            if self.of(fork.target).born:
                self.drop(self.streams.pop(fork.target).units)

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        return [tuple(self.streams[rid, label].units) for rid, _, label in step.rows]

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        assert isinstance(step, TapeStep)
        for rid, _, label in step.rows:
            self.streams[rid, label].taken = 0
        for fork in step.after:
            self.fork(fork)
        for fork in step.before:
            self.streams[fork.target].born = False

    def fork(self, fork: Fork) -> None:
        units = self.streams[fork.request_id, fork.label].units
        self.own(units)
        self.streams[fork.target] = Stream(list(units))

    def remove(self, rid: str) -> None:
        for name in sorted(name for name in self.streams if name[0] == rid):
            self.drop(self.streams.pop(name).units)

    def compute(self, step: SubmoduleStep) -> None:
        """Each token leaves the name of its stream and its place behind."""
        for rid, span, label in step.segments:
            units = self.streams[rid, label].units
            for at in range(len(units) - span, len(units)):
                self.content[units[at]] = f"{rid} {label} {at}"

    def seen(self, rid: str, label: str) -> list[str]:
        return [self.content[unit] for unit in self.of((rid, label)).units]

    def check_integrity(self) -> None:
        """Leaves the proof to those who look at `holdings`."""

    def holdings(self) -> Holdings:
        held: dict[str, list[int]] = {}
        for rid, label in sorted(self.streams):
            held.setdefault(rid, []).extend(self.streams[rid, label].units)
        shared = frozenset(unit for unit, owners in enumerate(self.owners) if owners > 1)
        return Holdings(tuple(self.free), {rid: tuple(units) for rid, units in held.items()}, shared=shared)

    def of(self, name: Name) -> Stream:
        return self.streams.get(name, Stream())

    def own(self, units: Sequence[int]) -> None:
        for unit in units:
            self.owners[unit] += 1

    def drop(self, units: Sequence[int]) -> None:
        for unit in reversed(units):
            self.owners[unit] -= 1
            if not self.owners[unit]:
                self.free.append(unit)
