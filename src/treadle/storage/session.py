"""The writing side of a run: outputs that appear whole or not at all.

Everything is written into hidden folders, unit by unit, here or in other processes. `commit` gives the files
one schema and their names, and each output appears by one act. `abort`, or a killed process followed by the
next session on the same output, leaves nothing; with a checkpoint it leaves the finished units. Several
outputs appear one right after the other: only a process killed just between two of them leaves the first
without the second, until it goes on by its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from types import TracebackType
from typing import Self

from treadle.errors import ArgumentError, ArtifactError, RunError, UnknownNameError
from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import is_remote, local_path, remove
from treadle.storage.checkpoint import Checkpoint, OpenCheckpoint
from treadle.storage.dataset import BadRow, OutputSpec, Rows, WorkUnit
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.output_manifest import OutputManifest
from treadle.storage.row_journal import RowJournal
from treadle.storage.session_places import SessionPlaces
from treadle.storage.target import LoadTarget, Target
from treadle.storage.unit_record import UnitRecord
from treadle.storage.unit_writer import Staging, UnitWriter
from treadle.storage.united import United, united

_REJECTS = WorkUnit("rejects", -1, "", 0)


class Session:
    """A set of outputs written together, and the quarantine of the rows that could not be used.

    `scratch` are outputs that never appear: what one phase of a run hands to the next. `notes` are what a
    commit could not clear away, a sentence each. Not for several threads at once. As a `with` block it aborts
    on the way out unless it was committed.

    Raises, before any effect, ArtifactError when an output is already there or another run has the
    checkpoint, ArgumentError for a path that cannot be written or is not apart from another, UnknownNameError
    for an unknown backend or compression.
    """

    def __init__(
        self,
        outputs: Mapping[str, OutputSpec],
        *,
        scratch: Mapping[str, OutputSpec] | None = None,
        quarantine: str | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._specs = dict(outputs)
        hidden = dict(scratch or {})
        _check(self._specs, hidden, quarantine)
        self._over = False
        self._failed: str | None = None
        self.notes: list[str] = []
        self._records: dict[tuple[str, int], UnitRecord] = {}
        self._partial: list[UnitRecord] = []
        self._open: dict[str, UnitWriter] = {}
        self._units: dict[str, list[WorkUnit]] = {}
        self._rejects: UnitWriter | None = None
        self._rows: RowJournal | None = None
        self._kept: OpenCheckpoint | None = None
        self._places = SessionPlaces({}, {}, None, None)  # none yet, should the checkpoint be refused
        with Unwind() as unwind:
            unwind.push(self.abort)
            if checkpoint is not None:
                self._kept = OpenCheckpoint(checkpoint, self._specs | hidden)
            self._places = SessionPlaces(self._specs, hidden, quarantine, self._kept)
            self._places.prepare()
            unwind.release()

    @property
    def staging(self) -> Staging:
        """What writing a unit needs to know, here or in another process."""
        return self._places.staging

    def write(self, output: str, unit: WorkUnit, rows: Rows) -> None:
        """Append rows to the file of (output, unit), which is finished by the next unit or by `commit`.

        Raises UnknownNameError for an output that was not declared; RunError with the path when the rows
        do not fit the rows before them or cannot be written.
        """
        self._check_open()
        if output not in self.staging.places:
            raise UnknownNameError("output", output, self.staging.places)
        self._check_whole()
        units = self._units.setdefault(output, [])
        if not units or units[-1] != unit:
            _check_new(output, unit, units)
            self._finish(output)
            units.append(unit)
            self._open[output] = self.staging.open_unit(unit, f"write {output}")
        with self._noting_failure(output):
            self._open[output].write(output, rows)

    def reject(self, bad: BadRow) -> None:
        """Put a row into the quarantine file. Raises ArgumentError when the session has none."""
        self._check_open()
        if self._rejects is None:
            self._rejects = self.staging.open_unit(_REJECTS, "rejects")
        self._rejects.reject(bad)

    def accept(self, record: UnitRecord, *, complete: bool = True) -> None:
        """Take the files of a unit that a `UnitWriter` has finished, here or in another process.

        Not `complete`: only its rejected rows, for a run that fails because of them.
        """
        self._check_open()
        if complete:
            self._records[record.phase, record.unit.index] = record
        else:
            self._partial.append(record)

    def finished(self, phase: str, unit: WorkUnit, depends: str = "") -> UnitRecord | None:
        """What an earlier run of this checkpoint has made of the unit; it counts as accepted."""
        record = None if self._kept is None else self._kept.find(phase, unit, depends)
        if record is not None:
            self.accept(record)
        return record

    def row_journal(self) -> RowJournal | None:
        """The journal of single rows in the checkpoint, to read and to add to; None without a checkpoint.

        They outlive a change of its recipe, so their keys have to stand for all that they depend on. The
        session closes it. Raises RunError when it cannot be written.
        """
        self._check_open()
        if self._rows is None and self._kept is not None:
            self._rows = self._kept.open_row_journal()
        return self._rows

    def publish_quarantine(self) -> None:
        """Show the rejected rows now: for a run that fails because of them and will show nothing else."""
        self._check_open()
        self._finish_rejects()
        if self._places.quarantine is not None:
            self._places.quarantine.publish(self._rejected_parts())

    def commit(self, conclude: Callable[[], object] = lambda: None) -> Mapping[str, OutputManifest]:
        """Make everything visible, and return the manifest of each output; when it raises, nothing is.

        `conclude` is called when everything is visible, and belongs to the commit: when it fails, or the
        process is killed before it is over, the checkpoint stays, and the next run comes to it again.
        """
        self._check_open()
        with Unwind() as unwind:
            unwind.push(self.abort)
            self._check_whole()
            for output in list(self._open):
                self._finish(output)
            self._finish_rejects()
            records = list(self._in_order())
            found = {name: united(name, spec, records) for name, spec in self._specs.items()}
            manifests = self._publish(found, unwind)
            unwind.release()  # from here on nothing is taken back
            unwind.push(self.abort)
            conclude()
            unwind.release()
        self._clean()
        return manifests

    def abort(self) -> None:
        """Remove everything staged, but for the units of a checkpoint. Nothing the second time."""
        if self._over:
            return
        self._over = True
        with Unwind() as unwind:
            if self._kept is not None:
                unwind.push(self._kept.release)
            if self._kept is not None and self._kept.keeps_nothing:
                unwind.push(self._kept.remove)
                for target in self._places.targets.values():
                    unwind.push(remove, target.folder)
            self._places.discard_into(unwind)
            for each in [*self._open.values(), *([self._rejects] if self._rejects else [])]:
                unwind.push(each.abandon)
            self._close_rows_into(unwind)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unwind = Unwind()
        unwind.push(self.abort)
        unwind.__exit__(kind, error, trace)

    def _finish(self, output: str) -> None:
        writer = self._open.pop(output, None)
        if writer is not None:
            with self._noting_failure(output), writer:
                self.accept(writer.finish({}))

    def _finish_rejects(self) -> None:
        if self._rejects is not None:
            with self._rejects as writer:
                self._partial.insert(0, writer.finish({}))
            self._rejects = None

    def _rejected_parts(self) -> list[Path]:
        records = [*self._in_order(), *self._partial]
        return [Path(each.rejected.path) for each in records if each.rejected is not None]

    def _in_order(self) -> Iterator[UnitRecord]:
        # Phases in the order in which they came, units by their place.
        phases = list(dict.fromkeys(phase for phase, _ in self._records))
        keys = sorted(self._records, key=lambda key: (phases.index(key[0]), key[1]))
        return (self._records[key] for key in keys)

    def _publish(self, found: Mapping[str, United], unwind: Unwind) -> dict[str, OutputManifest]:
        # The quarantine comes first: outputs without the account of what they lack must never be seen. Tables
        # of databases come last, since a transaction that is over cannot be taken back.
        manifests = {name: each.manifest for name, each in found.items()}
        if self._kept is not None:
            self._kept.plan_commit(manifests)
        if (quarantine := self._places.quarantine) is not None:
            unwind.push(quarantine.withdraw)
            quarantine.publish(self._rejected_parts())
        targets = self._places.targets
        for name, target in sorted(targets.items(), key=lambda each: isinstance(each[1], LoadTarget)):
            if not self._places.stands(name):
                manifests[name] = target.publish(found[name].parts, found[name].manifest)
            unwind.push(target.withdraw)
        for target in targets.values():
            self._note(target.settle())
        return manifests

    def _note(self, left: str | None) -> None:
        if left is not None:
            self.notes.append(left)

    def _clean(self) -> None:
        """After a commit: nothing that was staged is needed any more.

        The checkpoint goes before what it tells of. The other way round, a run that is killed in between
        would be taken for one that has not published; so it leaves hidden files that count for nothing.
        """
        self._over = True
        with Unwind() as unwind:
            if self._kept is not None:
                unwind.push(self._kept.release)
                for target in self._places.targets.values():
                    unwind.push(remove, target.folder)
                    unwind.push(self._forget, target)
                unwind.push(self._kept.remove)
            self._places.discard_into(unwind)
            self._close_rows_into(unwind)

    def _close_rows_into(self, unwind: Unwind) -> None:
        if self._rows is not None:
            unwind.push(self._rows.close)

    def _forget(self, target: Target) -> None:
        if isinstance(target, LoadTarget):
            self._note(target.forget())

    @contextmanager
    def _noting_failure(self, output: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._failed = output
            raise

    def _check_whole(self) -> None:
        if self._failed is not None:
            raise RunError(f"output {self._failed!r}: a write failed, so its rows are not all there")

    def _check_open(self) -> None:
        if self._over:
            raise RunError("this session is over: it was committed or aborted")


def _check(
    outputs: Mapping[str, OutputSpec], scratch: Mapping[str, OutputSpec], quarantine: str | None
) -> None:
    for spec in (*outputs.values(), *scratch.values()):
        write_backend_for(spec.backend).codec(spec.compression)
    paths = [each.path for each in outputs.values() if write_backend_for(each.backend).load is None]
    for path in paths:
        if not is_remote(path) and not local_path(path).name:
            raise ArtifactError(f"{path} is already there and is never overwritten; choose another path")
    _check_apart([*paths, *([quarantine] if quarantine else [])])


def _check_new(output: str, unit: WorkUnit, units: Sequence[WorkUnit]) -> None:
    for each in units:
        if each.index == unit.index:
            raise RunError(
                f"output {output!r}: unit {each.id} is finished, yet rows of unit {unit.id} came; write "
                "one unit after the other, each with an index of its own"
            )


def _check_apart(paths: Sequence[str]) -> None:
    """An output appears by one act, so nothing else may be written at its path or below."""
    for one, other in permutations(map(_plain_path, paths), 2):
        if one == other or other.startswith(f"{one}/"):
            raise ArgumentError(f"cannot write both {one} and {other}: expected paths apart from each other")


def _plain_path(path: str) -> str:
    return path.rstrip("/") if is_remote(path) else str(local_path(path))
