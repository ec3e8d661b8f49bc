"""Which steps are done, and which have to run, and why.

The rule: what is asked for, and what a step that is not done needs, is looked at; nothing else.

A step is done when its record stands (it can be read, and the files that it lists are there with their
sizes), when the policy for drift does not want it built anew, and when, for each dependency that is looked
at too, it was built from that dependency's present build. A step of a `dev` version is never done.

So with all steps asked for, deleting one output folder runs that step and all that depends on it,
and nothing else. With only the last step asked for, and done, a missing ancestor is not missed.

The work is linear in steps and edges, and each record is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from treadle.artifacts import RecordHead, code_hash, heads, is_url, open_store
from treadle.artifacts.version import is_dev
from treadle.errors import DriftError
from treadle.execution.drift import Drift, describe_drift, drift_of
from treadle.execution.graph import StepGraph
from treadle.execution.step_spec import StepSpec

OnDrift: TypeAlias = Literal["serve", "warn", "rebuild", "error"]
"""What becomes of a done step whose recipe, under one name and version, or whose code has changed."""

_READERS = 16


class Why(Enum):
    """Why a step has to run."""

    NEVER_BUILT = "there is no build of it"
    FILES_GONE = "files of its output are missing or have another size"
    FORCED = "it was asked for by force"
    DEV = "it has a dev version, which is always built anew"
    RECIPE_CHANGED = "its recipe has changed"
    CODE_CHANGED = "the code of its function has changed"
    DEP_RUNS = "it needs a step that has to run"
    DEP_REBUILT = "it was built from a former build of what it needs"


class Reason(NamedTuple):
    """Why a step has to run; `dep` is the id of the dependency, where it is because of one."""

    why: Why
    dep: str = ""

    def __str__(self) -> str:
        return f"{self.why.value}: {self.dep}" if self.dep else self.why.value


@dataclass(frozen=True, slots=True)
class Plan:
    """`done` has the records of the done steps, `reasons` why the others that were looked at have to run.

    `numbers` has the newest build of each step looked at that has one, `drifted` the done steps that are
    served though something about them has changed.
    """

    done: Mapping[str, RecordHead]
    reasons: Mapping[str, Reason]
    numbers: Mapping[str, int]
    drifted: Mapping[str, Drift]


def look(
    graph: StepGraph,
    forced: Set[str] = frozenset(),
    on_drift: OnDrift = "warn",
    stale: Set[str] = frozenset(),
) -> Plan:
    """Look at the steps asked for, and at `forced` ones and their dependents, which are not done.

    `stale` are steps of which it is known already that they are not done.

    Raises:
        ArtifactError: a record cannot be read.
        DriftError: something has changed about a done step, and `on_drift` is "error".
    """
    for prefix in {str(step.output_path_prefix) for step in graph.steps.values()}:
        open_store(prefix).refresh()
    search = _Search(graph, forced, on_drift, stale)
    search.run()
    done = {
        key: head for key, head in search.looked.items() if head is not None and key not in search.reasons
    }
    for key in search.reasons:  # now: when the step runs, its file may say something else already
        if (fn := graph.steps[key].fn) is not None:
            code_hash(fn)
    drifted = {key: search.drifted[key] for key in done if key in search.drifted}
    if drifted and on_drift == "error":
        raise DriftError(
            [f"{key}: {describe_drift(graph.steps[key], drift)}" for key, drift in drifted.items()]
        )
    return Plan(done, search.reasons, search.numbers, drifted)


def standing(step: StepSpec) -> RecordHead | None:
    """The record of the step's newest build if its files are there, whatever became of dependencies since.

    Raises:
        ArtifactError: the record cannot be read.
    """
    found = heads([(str(step.output_path_prefix), step.output_path)]).get(step.output_path)
    return found[1] if found is not None and _files_stand(step, found[1]) else None


def built_from(head: RecordHead, builds: Mapping[str, str]) -> bool:
    """Whether the step was built from these builds of its dependencies (step id -> build)."""
    return all(head.deps.get(dep) == build for dep, build in builds.items())


def _files_stand(step: StepSpec, head: RecordHead) -> bool:
    return open_store(str(step.output_path_prefix)).files_stand(step.output_path, head)


class _Search:
    """Steps become looked at, and looked-at ones stale; each happens once to a step."""

    def __init__(self, graph: StepGraph, forced: Set[str], on_drift: OnDrift, stale: Set[str]) -> None:
        self._graph = graph
        self._forced = forced
        self._rebuild = on_drift == "rebuild"
        self._known_stale = stale
        self.looked: dict[str, RecordHead | None] = {}
        self.numbers: dict[str, int] = {}
        self.reasons: dict[str, Reason] = {}
        self.drifted: dict[str, Drift] = {}
        self._to_look: list[str] = [*graph.targets, *graph.with_descendants(forced)]
        self._to_spoil: list[tuple[str, Reason]] = []

    def run(self) -> None:
        while self._to_look or self._to_spoil:
            while self._to_spoil:
                self._spoil(*self._to_spoil.pop())
            batch = [key for key in dict.fromkeys(self._to_look) if key not in self.looked]
            self._to_look.clear()
            self._read(batch)
            for key in batch:
                self._compare(key)

    def _read(self, batch: Iterable[str]) -> None:
        """The records of these steps, all asked for at once."""
        steps = {key: self._graph.steps[key] for key in batch}
        asked = ((str(each.output_path_prefix), each.output_path) for each in steps.values())
        found = heads(asked)
        there = {key: found[step.output_path][1] for key, step in steps.items() if step.output_path in found}
        whole = self._with_files({key: head for key, head in there.items() if head.files})
        for key, step in steps.items():
            if key in there:
                self.numbers[key] = found[step.output_path][0]
            self.looked[key] = there.get(key)
            reason = self._reason(key, step, there.get(key), whole)
            if reason is not None:
                self._to_spoil.append((key, reason))

    def _with_files(self, recorded: Mapping[str, RecordHead]) -> dict[str, bool]:
        """Whether the files stand; several at once where a look is a question to a server."""
        steps = [self._graph.steps[key] for key in recorded]
        if not any(is_url(each.output_path) for each in steps):
            answers: Iterable[bool] = map(_files_stand, steps, recorded.values())
            return dict(zip(recorded, answers, strict=True))
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(recorded, pool.map(_files_stand, steps, recorded.values()), strict=True))

    def _reason(
        self, key: str, step: StepSpec, head: RecordHead | None, whole: Mapping[str, bool]
    ) -> Reason | None:
        """Why the step itself is not done, whatever it needs."""
        if key in self._forced:
            return Reason(Why.FORCED)
        if is_dev(step.version):
            return Reason(Why.DEV)
        if head is None or key in self._known_stale:
            return Reason(Why.NEVER_BUILT)
        if not whole.get(key, True):
            return Reason(Why.FILES_GONE)
        if step.source is not None and head.location != step.source:
            return Reason(Why.RECIPE_CHANGED)
        drift = drift_of(step, head)
        if drift:
            self.drifted[key] = drift
        if drift and self._rebuild:
            return Reason(Why.RECIPE_CHANGED if drift.recipe else Why.CODE_CHANGED)
        return None

    def _spoil(self, key: str, reason: Reason) -> None:
        """`key` is not done: so it needs its dependencies, and its dependents are not done either."""
        if key not in self.reasons:
            self.reasons[key] = reason
            self._to_look.extend(self._graph.deps[key])
            because = Reason(Why.DEP_RUNS, key)
            self._to_spoil.extend(
                (each, because) for each in self._graph.dependents[key] if each in self.looked
            )

    def _compare(self, key: str) -> None:
        """Compare a step that was just read with its neighbours that have been read too."""
        for dep in self._graph.deps[key]:
            self._compare_edge(key, dep)
        for dependent in self._graph.dependents[key]:
            self._compare_edge(dependent, key)

    def _compare_edge(self, key: str, dep: str) -> None:
        if key in self.looked and dep in self.looked and key not in self.reasons:
            own, other = self.looked[key], self.looked[dep]
            if dep in self.reasons:
                self._to_spoil.append((key, Reason(Why.DEP_RUNS, dep)))
            elif own is not None and other is not None and own.deps.get(dep) != other.build:
                self._to_spoil.append((key, Reason(Why.DEP_REBUILT, dep)))
