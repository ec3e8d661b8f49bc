"""What a run would do: for each step whether it runs, and why. Nothing is changed by asking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from treadle.artifacts import open_store
from treadle.execution.drift import describe_drift
from treadle.execution.freshness import Plan, look
from treadle.execution.graph import StepGraph
from treadle.execution.labels import labels
from treadle.execution.path import critical_path, remaining, weights
from treadle.execution.step_spec import StepSpec
from treadle.storage.ledger import Owner
from treadle.storage.ledger.process import is_gone

T = TypeVar("T")


class StepState(Enum):
    """Where a step stands before a run."""

    RUN = "run"
    CACHED = "cached"
    DRIFTED = "drifted"
    RUNNING = "running"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a plan, and the reason for its state.

    RUN: this run would run it. CACHED: it is done. DRIFTED: it is done and served, though something about it
    has changed. RUNNING: another runner has it now. BLOCKED: it needs one that another runner has. `seconds`
    is what it took when it, or another of its name, was last built; None when none was. `label` tells it from
    others of its name, by the arguments in which they differ.
    """

    id: str
    name: str
    state: StepState
    reason: str
    deps: tuple[str, ...]
    output_path: str
    seconds: float | None
    label: str = ""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """`steps` are those that are done or have to run, dependencies first.

    `seconds` is how long the run would take by the times of former builds, None when none is known, and
    `critical_path` the chain of steps that it cannot be shorter than. At most `at_once` run at the same time.
    """

    steps: tuple[PlannedStep, ...]
    seconds: float | None
    critical_path: tuple[str, ...]
    at_once: int = 1

    def count(self, state: StepState) -> int:
        """How many steps are in that state."""
        return sum(step.state is state for step in self.steps)


def plan_steps(graph: StepGraph, plan: Plan, at_once: int) -> RunPlan:
    """The plan in words; one more question to each store: who has leases."""
    to_run = {key: graph.steps[key] for key in graph.order if key in plan.reasons}
    owners = _owners(to_run)
    known = known_seconds(to_run.values())
    blocked = graph.with_descendants(owners)
    told = labels(graph.steps)
    listed = tuple(
        replace(_planned(graph, plan, key, owners, blocked, known), label=told.get(key, ""))
        for key in graph.order
        if key in plan.done or key in plan.reasons
    )
    needs = {key: [dep for dep in graph.deps[key] if dep in to_run] for key in to_run}
    weight = weights({key: step.name for key, step in to_run.items()}, known)
    left = remaining(needs, weight)
    longest = max(left.values(), default=0.0)
    seconds = max(longest, sum(weight.values()) / at_once) if known or not to_run else None
    return RunPlan(listed, seconds, critical_path(needs, left) if known else (), at_once)


def known_seconds(steps: Iterable[StepSpec]) -> dict[str, float]:
    """How long steps of these names took when they last were built (name -> seconds)."""
    by_store: dict[str, set[str]] = {}
    for step in steps:
        by_store.setdefault(str(step.output_path_prefix), set()).add(step.name)
    found: dict[str, float] = {}
    for prefix, names in by_store.items():
        found.update(open_store(prefix).ledger.seconds(names))
    return found


def lately_failed(graph: StepGraph) -> frozenset[str]:
    """The steps whose last attempt was no success, though a later run may have been served by a build."""
    notes = _by_place(graph.steps, lambda store, places: open_store(store).ledger.last_attempts(places))
    return frozenset(key for key, note in notes.items() if note.outcome != "done")


def changed(graph: StepGraph) -> frozenset[str]:
    """The steps that are not done, or have drifted."""
    plan = look(replace(graph, targets=graph.order))
    return frozenset(plan.reasons) | frozenset(plan.drifted)


def _planned(
    graph: StepGraph,
    plan: Plan,
    key: str,
    owners: Mapping[str, Owner],
    blocked: set[str],
    known: Mapping[str, float],
) -> PlannedStep:
    step = graph.steps[key]
    state, reason = _state(graph, plan, key, owners, blocked)
    seconds = plan.done[key].seconds if key in plan.done else known.get(step.name)
    return PlannedStep(key, step.name, state, reason, graph.deps[key], step.output_path, seconds)


def _state(
    graph: StepGraph, plan: Plan, key: str, owners: Mapping[str, Owner], blocked: set[str]
) -> tuple[StepState, str]:
    if key in plan.drifted:
        return StepState.DRIFTED, f"{describe_drift(graph.steps[key], plan.drifted[key])} since it was built"
    if key in plan.done:
        return StepState.CACHED, "there is a build of it"
    if key in owners:
        return StepState.RUNNING, owners[key].describe()
    if key in blocked:
        running = ", ".join(dep for dep in graph.deps[key] if dep in blocked)
        return StepState.BLOCKED, f"it needs what another runner has: {running}"
    return StepState.RUN, str(plan.reasons[key])


def _owners(steps: Mapping[str, StepSpec]) -> dict[str, Owner]:
    """Who is at work on them; what a dead process of this machine has left is free for a run."""
    found = _by_place(steps, lambda store, places: open_store(store).ledger.owners(places))
    return {key: owner for key, owner in found.items() if not is_gone(owner)}


def _by_place(
    steps: Mapping[str, StepSpec], ask: Callable[[str, list[str]], Mapping[str, T]]
) -> dict[str, T]:
    """Step id -> what the ledger of its store says of its place; each ledger is asked once."""
    keys: dict[str, dict[str, str]] = {}
    for key, step in steps.items():
        prefix = str(step.output_path_prefix)
        keys.setdefault(prefix, {})[open_store(prefix).place(step.output_path)] = key
    return {
        places[place]: answer
        for prefix, places in keys.items()
        for place, answer in ask(prefix, list(places)).items()
    }
