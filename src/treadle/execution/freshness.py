"""Which steps are done, and which have to run.

The rule: what is asked for, and what a step that is not done needs, is looked at; nothing else.

A step is done when its record stands (it can be read, has the step's identity, and the files that
it lists are there with their sizes), and when, for each dependency that is looked at too, it was
built from that dependency's present build.

So with all steps asked for, deleting one output folder runs that step and all that depends on it,
and nothing else. With only the last step asked for, and done, a missing ancestor is not missed.

The work is linear in steps and edges, and each record is read once.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from treadle.artifacts import Record, code_hash, read_record
from treadle.execution.graph import StepGraph
from treadle.execution.step_spec import StepSpec


@dataclass(frozen=True)
class Plan:
    """`records` are those of the done steps (step id -> record); `to_run` are the others looked at.

    `code_changed` are done steps whose function says something else than when they were built.
    """

    records: Mapping[str, Record]
    to_run: Set[str]
    code_changed: tuple[str, ...]


def look(graph: StepGraph, forced: Set[str]) -> Plan:
    """Look at the steps asked for, and at `forced` ones and their dependents, which are not done.

    Raises:
        ArtifactError: a record cannot be read.
    """
    search = _Search(graph, forced)
    search.run()
    done = {key: record for key in graph.order if (record := search.standing(key)) is not None}
    for key in search.stale:  # now: when the step runs, its file may say something else already
        code_hash(graph.steps[key].fn)
    changed = tuple(key for key, record in done.items() if _code_changed(graph.steps[key], record))
    return Plan(done, frozenset(search.stale), changed)


def standing_record(step: StepSpec) -> Record | None:
    """The record of the step's folder if it stands, whatever became of the dependencies since.

    Raises:
        ArtifactError: the record cannot be read.
    """
    record = read_record(step.output_path)
    if record is None or record.fingerprint != step.hash_id:
        return None
    return record if _files_stand(step.output_path, record) else None


def built_from(record: Record, builds: Mapping[str, str]) -> bool:
    """Whether the step was built from these builds of its dependencies (step id -> build)."""
    return all(record.deps.get(dep) == build for dep, build in builds.items())


def _files_stand(output_path: str, record: Record) -> bool:
    try:
        found = ((Path(output_path, file.path).stat(), file.bytes) for file in record.files)
        return all(stat.S_ISREG(each.st_mode) and each.st_size == size for each, size in found)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise  # a store that cannot be looked at just now is no reason to build everything anew


def _code_changed(step: StepSpec, record: Record) -> bool:
    present = code_hash(step.fn)
    return bool(present and record.code_hash) and present != record.code_hash


class _Search:
    """Steps become looked at, and looked-at ones stale; each happens once to a step."""

    def __init__(self, graph: StepGraph, forced: Set[str]) -> None:
        self._graph = graph
        self._forced = forced
        self._looked: dict[str, Record | None] = {}
        self.stale: set[str] = set()
        self._to_look = [*graph.targets, *graph.with_descendants(forced)]
        self._to_spoil: list[str] = []

    def run(self) -> None:
        while self._to_look or self._to_spoil:
            if self._to_spoil:
                self._spoil(self._to_spoil.pop())
            else:
                self._look_at(self._to_look.pop())

    def standing(self, key: str) -> Record | None:
        return None if key in self.stale else self._looked.get(key)

    def _look_at(self, key: str) -> None:
        if key in self._looked:
            return
        self._looked[key] = None if key in self._forced else standing_record(self._graph.steps[key])
        if self._looked[key] is None:
            self._to_spoil.append(key)
        for dep in self._graph.deps[key]:
            self._compare(key, dep)
        for dependent in self._graph.dependents[key]:
            self._compare(dependent, key)

    def _spoil(self, key: str) -> None:
        """`key` is not done: so it needs its dependencies, and its dependents are not done either."""
        if key not in self.stale:
            self.stale.add(key)
            self._to_look.extend(self._graph.deps[key])
            self._to_spoil.extend(each for each in self._graph.dependents[key] if each in self._looked)

    def _compare(self, key: str, dep: str) -> None:
        if key in self._looked and dep in self._looked:
            own, other = self._looked[key], self._looked[dep]
            if own is None or other is None or dep in self.stale or own.deps.get(dep) != other.build:
                self._to_spoil.append(key)
