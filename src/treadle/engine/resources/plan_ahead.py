"""The cycle with a stage before it: a step that is admitted and planned while the one before it computes.

    pre_admit, pre_plan    the resources that can plan ahead reserve and plan, marked by `ctx.is_preplan`
    admit                  of the same step: the others reserve too, and what was staged is live
    plan                   of the same step: what was planned ahead is promoted, the others plan

The stage is one guess at what comes next. Whatever else comes, it is dropped on every resource before
anything is done for the other step: nobody is refused for want of what a wrong guess holds, and no plan of
another moment is promoted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from treadle.engine.resources.cycle import Cycle, Sweep
from treadle.engine.resources.protocols import PlansAhead
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.step import FullAdmitOutcome, SubmoduleStep
from treadle.errors import GraphError
from treadle.kernel import Unwind

_NOTHING: Mapping[str, PlansAhead] = {}


@dataclass(frozen=True)
class _Stage:
    """What was staged: the step as it was declared, its requests, and who has planned it."""

    identity: tuple[object, ...]
    request_ids: frozenset[str]
    planned: dict[str, PlansAhead] = field(default_factory=dict)


class PlanAhead:
    """Stages one step at most before `cycle`.

    Args:
        cycle: what drives the resources.
        driven: key -> resource, in the order of every sweep.

    Raises:
        GraphError: also a ValueError; a resource plans ahead, and one that it depends on does not.
    """

    def __init__(self, cycle: Cycle, driven: Mapping[str, Resource]) -> None:
        self._cycle = cycle
        self._able = {key: each for key, each in driven.items() if isinstance(each, PlansAhead)}
        self._stage: _Stage | None = None
        for key in self._able:
            _check_dependencies(key, driven[key].depends_on, self._able)

    @property
    def staged(self) -> bool:
        """A step is reserved or planned ahead, and not yet promoted."""
        return self._stage is not None

    def pre_admit(self, step: SubmoduleStep) -> FullAdmitOutcome:
        """Reserve ahead; unwound on refusal as `admit` is, and then nothing is staged."""
        sweep = self._begin(step, is_preplan=True)
        outcome = self._admit(step, sweep)
        if outcome.ok:
            self._stage = self._stage or _stage_of(step)
        return outcome

    def pre_plan(self, step: SubmoduleStep) -> dict[str, object]:
        """Plan ahead, into pending places; when one raises, the stage is dropped."""
        sweep = self._begin(step, is_preplan=True)
        stage = self._stage = self._stage or _stage_of(step)
        with Unwind() as unwind:
            unwind.push(self.clear)
            results = self._cycle.plan(step, sweep, _NOTHING)
            unwind.release()
        stage.planned.update((key, self._able[key]) for key, _ in sweep)
        return results

    def clear(self) -> None:
        """Drop the stage on every resource, each one tried, and the record of it."""
        self._stage = None
        with Unwind() as unwind:
            for resource in self._able.values():
                unwind.push(resource.clear_preplan)

    def admit(self, step: SubmoduleStep) -> FullAdmitOutcome:
        """See `Cycle.admit`; what the stage reserved is given back as well when the step is refused."""
        return self._admit(step, self._begin(step, is_preplan=False))

    def plan(self, step: SubmoduleStep) -> dict[str, object]:
        """See `Cycle.plan`; when one raises, the stage is dropped."""
        sweep = self._begin(step, is_preplan=False)
        if self._stage is None:
            return self._cycle.plan(step, sweep, _NOTHING)
        with Unwind() as unwind:
            unwind.push(self.clear)
            results = self._cycle.plan(step, sweep, self._stage.planned)
            unwind.release()
        self._stage = None
        return results

    def commit(self, step: SubmoduleStep) -> None:
        """See `Cycle.commit`; a stage that counts on what its requests had before is dropped."""
        sweep = self._cycle.sweep(step)
        self._drop_if_it_has(step)
        self._cycle.commit(step, sweep)

    def rollback(self, step: SubmoduleStep) -> None:
        """See `Cycle.rollback`; a stage of the same requests goes with it."""
        sweep = self._cycle.sweep(step)
        with Unwind() as unwind:
            unwind.push(self._cycle.rollback, step, sweep)
            self._drop_if_it_has(step)

    def remove(self, rid: str) -> None:
        """See `Cycle.remove`; a stage that has the request goes with it."""
        with Unwind() as unwind:
            unwind.push(self._cycle.remove, rid)
            if self._stage is not None and rid in self._stage.request_ids:
                self.clear()

    def _admit(self, step: SubmoduleStep, sweep: Sweep) -> FullAdmitOutcome:
        if self._stage is None:
            return self._cycle.admit(step, sweep)
        with Unwind() as unwind:
            unwind.push(self.clear)
            outcome = self._cycle.admit(step, sweep)
            if outcome.ok:
                unwind.release()
        return outcome

    def _begin(self, step: SubmoduleStep, *, is_preplan: bool) -> Sweep:
        """Who takes part, when the stage of another step is dropped."""
        sweep = self._cycle.sweep(step)
        if self._stage is not None and self._stage.identity != _identity(step):
            self.clear()
        step.ctx.is_preplan = is_preplan
        return tuple(pair for pair in sweep if pair[0] in self._able) if is_preplan else sweep

    def _drop_if_it_has(self, step: SubmoduleStep) -> None:
        if self._stage is not None and not self._stage.request_ids.isdisjoint(_requests(step)):
            self.clear()


def _stage_of(step: SubmoduleStep) -> _Stage:
    return _Stage(_identity(step), frozenset(_requests(step)))


def _identity(step: SubmoduleStep) -> tuple[object, ...]:
    """All that is known of a step before it is admitted: one with the same is the same step."""
    ctx = step.ctx
    return (
        dict(step.resources),
        step.segments,
        ctx.request_ids,
        ctx.padded_request_ids,
        ctx.graph_walk,
        dict(ctx.request_walks),
        ctx.slot,
    )


def _requests(step: SubmoduleStep) -> set[str]:
    return set(step.ctx.padded_request_ids).union(*(part.request_ids for part in step.resources.values()))


def _check_dependencies(key: str, depends_on: Collection[str], able: Collection[str]) -> None:
    if behind := sorted(set(depends_on).difference(able)):
        raise GraphError(
            f"resource {key!r} plans ahead but depends on {behind}, which do not: it would read what they "
            "planned for the step that still computes; let them plan ahead too, or this one not"
        )
