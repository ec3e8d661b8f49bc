"""Which steps are done, and which have to run, and why.

A step is there when its record stands and the files that it lists are there with their sizes. It is done when
it is there, the policy for drift does not want it built anew, it was built from the present build of each
dependency that is there, and none of its dependencies has to run. A step of a `dev` version is never done.

A step that is not there has to run when it is asked for, or when a step that has to run needs it. So with all
steps asked for, deleting one output folder runs that step and all that depends on it, and nothing else. With
only the last step asked for, and done, an ancestor that is missing is not missed; but one that was built
anew, or has drifted, is seen.

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
    """`done` has the records of the done steps, `reasons` why others have to run.

    A step in neither is not there, and not needed. `numbers` has the newest build of each step that has one,
    `drifted` the done steps that are served though something about them has changed.
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
    """Look at all steps of the graph; `forced` ones are not done, whatever there is.

    `stale` are steps of which it is known already that they are not done.

    Raises:
        ArtifactError: a record cannot be read.
        DriftError: something has changed about a done step, and `on_drift` is "error".
    """
    for prefix in {str(step.output_path_prefix) for step in graph.steps.values()}:
        open_store(prefix).refresh()
    search = _Search(graph, forced, on_drift, stale)
    search.run()
    done = {key: head for key, head in search.heads.items() if search.is_done(key)}
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
    """Every step is read once, and becomes stale at most once."""

    def __init__(self, graph: StepGraph, forced: Set[str], on_drift: OnDrift, stale: Set[str]) -> None:
        self._graph = graph
        self._forced = forced
        self._rebuild = on_drift == "rebuild"
        self._known_stale = stale
        self._missing: dict[str, Reason] = {}
        self._to_spoil: list[tuple[str, Reason]] = []
        self.heads: dict[str, RecordHead] = {}
        self.numbers: dict[str, int] = {}
        self.reasons: dict[str, Reason] = {}
        self.drifted: dict[str, Drift] = {}

    def run(self) -> None:
        self._read()
        self._to_spoil.extend(
            (key, self._missing[key]) for key in self._graph.targets if key in self._missing
        )
        for key in self._graph.order:
            self._compare(key)
        while self._to_spoil:
            self._spoil(*self._to_spoil.pop())

    def is_done(self, key: str) -> bool:
        """Whether the step, which has a record, is done."""
        return key not in self.reasons and key not in self._missing

    def _read(self) -> None:
        """The records of all steps, asked for at once."""
        steps = self._graph.steps
        asked = ((str(each.output_path_prefix), each.output_path) for each in steps.values())
        found = heads(asked)
        there = {key: found[each.output_path] for key, each in steps.items() if each.output_path in found}
        self.numbers = {key: number for key, (number, _) in there.items()}
        self.heads = {key: head for key, (_, head) in there.items()}
        whole = self._with_files({key: head for key, head in self.heads.items() if head.files})
        for key, step in steps.items():
            self._judge(key, step, self.heads.get(key), whole.get(key, True))

    def _with_files(self, recorded: Mapping[str, RecordHead]) -> dict[str, bool]:
        """Whether the files stand; several at once where a look is a question to a server."""
        steps = [self._graph.steps[key] for key in recorded]
        if not any(is_url(each.output_path) for each in steps):
            answers: Iterable[bool] = map(_files_stand, steps, recorded.values())
            return dict(zip(recorded, answers, strict=True))
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(recorded, pool.map(_files_stand, steps, recorded.values()), strict=True))

    def _judge(self, key: str, step: StepSpec, head: RecordHead | None, whole: bool) -> None:
        """Why the step itself has to run, or would have to if it were needed."""
        if key in self._forced:
            self._to_spoil.append((key, Reason(Why.FORCED)))
        elif is_dev(step.version):
            self._to_spoil.append((key, Reason(Why.DEV)))
        elif key in self._known_stale:
            self._to_spoil.append((key, Reason(Why.NEVER_BUILT)))
        elif head is None:
            self._missing[key] = Reason(Why.NEVER_BUILT)
        elif not whole:
            self._missing[key] = Reason(Why.FILES_GONE)
        else:
            self._judge_drift(key, step, head)

    def _judge_drift(self, key: str, step: StepSpec, head: RecordHead) -> None:
        moved = step.source is not None and head.location != step.source
        drift = Drift(True, False) if moved else drift_of(step, head)
        if moved or (drift and self._rebuild):
            self._to_spoil.append((key, Reason(Why.RECIPE_CHANGED if drift.recipe else Why.CODE_CHANGED)))
        elif drift:
            self.drifted[key] = drift

    def _compare(self, key: str) -> None:
        """Compare a step that is there with the present builds of what it needs."""
        if key in self._missing or (own := self.heads.get(key)) is None:
            return
        for dep in self._graph.deps[key]:
            other = self.heads.get(dep)
            if other is not None and dep not in self._missing and own.deps.get(dep) != other.build:
                self._to_spoil.append((key, Reason(Why.DEP_REBUILT, dep)))

    def _spoil(self, key: str, reason: Reason) -> None:
        """`key` has to run: so what it needs must be there, and its dependents have to run as well."""
        if key in self.reasons:
            return
        self.reasons[key] = self._missing.get(key, reason)
        self._to_spoil.extend(
            (each, self._missing[each]) for each in self._graph.deps[key] if each in self._missing
        )
        self._to_spoil.extend((each, Reason(Why.DEP_RUNS, key)) for each in self._graph.dependents[key])
