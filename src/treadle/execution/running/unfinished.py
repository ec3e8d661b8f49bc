"""The steps of a run that are not done yet, and what is known of each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.artifacts import RecordHead
from treadle.execution.freshness import Plan, Reason
from treadle.execution.graph import StepGraph
from treadle.execution.step_spec import StepSpec


@dataclass(slots=True)
class Unit:
    """One step to run: from which builds, and why.

    `attempt` is the number of the present one, `losses` of the workers lost under it, `looks` of the times
    that it was found to be another owner's; `late` when its time is over.
    """

    key: str
    step: StepSpec
    reason: Reason
    known: int
    builds: dict[str, str]
    dependents: list[str] = field(default_factory=list)
    attempt: int = 1
    losses: int = 0
    looks: int = 0
    late: bool = False


class Unfinished:
    """Step id -> unit, of every step that has to run and is not done. Nothing is kept of done ones."""

    def __init__(self) -> None:
        self._units: dict[str, Unit] = {}

    def __getitem__(self, key: str) -> Unit:
        return self._units[key]

    def __contains__(self, key: object) -> bool:
        return key in self._units

    def units(self) -> tuple[Unit, ...]:
        """All of them, dependencies first."""
        return tuple(self._units.values())

    def keys(self) -> frozenset[str]:
        """The ids of all of them."""
        return frozenset(self._units)

    def add(self, graph: StepGraph, plan: Plan) -> dict[str, list[str]]:
        """Take up what the plan says has to run and is new; what each of those needs that is not done."""
        needs: dict[str, list[str]] = {}
        for key in graph.order:
            if key in plan.reasons and key not in self._units:
                needs[key] = self._add(key, graph, plan)
        return needs

    def done(self, key: str, head: RecordHead) -> None:
        """The step is done: who needs it learns from which build, and it is forgotten."""
        for dependent in self._units.pop(key).dependents:
            self._units[dependent].builds[key] = head.build

    def _add(self, key: str, graph: StepGraph, plan: Plan) -> list[str]:
        deps = graph.deps[key]
        builds = {dep: plan.done[dep].build for dep in deps if dep in plan.done}
        self._units[key] = Unit(key, graph.steps[key], plan.reasons[key], plan.numbers.get(key, 0), builds)
        open_deps = [dep for dep in deps if dep not in builds]
        for dep in open_deps:
            self._units[dep].dependents.append(key)
        return open_deps
