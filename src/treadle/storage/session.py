"""The writing side of a run: outputs that appear whole or not at all.

Everything is written into a hidden folder beside each output. `commit` finishes the files, writes
`_manifest.json` as the last file of the folder, and renames the folder into place: that rename is the
moment the output exists. `abort`, or a killed process followed by the next session on the same output,
leaves nothing. Several outputs appear one right after the other: only a process killed just between two of
these renames leaves the first without the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from types import TracebackType
from typing import Self

import pyarrow as pa

from treadle.errors import ArgumentError, RunError, UnknownNameError
from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import local_path
from treadle.storage.dataset import BadRow, Dataset, WorkUnit
from treadle.storage.output_manifest import OutputManifest
from treadle.storage.quarantine import Quarantine
from treadle.storage.staged_output import StagedOutput


class Session:
    """A set of outputs written together, and the quarantine of the rows that could not be used.

    Not for several threads at once. As a `with` block it aborts on the way out unless it was committed.

    Raises, before any effect, ArtifactError when an output is already there, ArgumentError for a path that
    is not local or not apart from another, UnknownNameError for an unknown backend or compression.
    """

    def __init__(self, outputs: Mapping[str, Dataset], *, quarantine: str | None = None) -> None:
        _check_apart([*(dataset.path for dataset in outputs.values()), *([quarantine] if quarantine else [])])
        self._outputs = {name: StagedOutput(name, dataset) for name, dataset in outputs.items()}
        self._quarantine = Quarantine(quarantine) if quarantine is not None else None
        self._over = False
        with Unwind() as unwind:
            unwind.push(self.abort)
            for each in self._staged():
                each.stage()
            unwind.release()

    def write(self, output: str, unit: WorkUnit, rows: pa.RecordBatch | pa.Table) -> None:
        """Append rows to the file of (output, unit), which is finished by the next unit or by `commit`.

        Raises UnknownNameError for an output that was not declared; RunError with the path when the rows
        do not fit the rows before them or cannot be written.
        """
        self._check_open()
        if output not in self._outputs:
            raise UnknownNameError("output", output, self._outputs)
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        self._outputs[output].write(unit, table)

    def reject(self, bad: BadRow) -> None:
        """Put a row into the quarantine file. Raises ArgumentError when the session has none."""
        self._check_open()
        if self._quarantine is None:
            raise ArgumentError(f"{bad.source}:{bad.line}: this session was given no quarantine file")
        self._quarantine.add(bad)

    def publish_quarantine(self) -> None:
        """Show the rejected rows now: for a run that fails because of them and will show nothing else."""
        self._check_open()
        if self._quarantine is not None:
            self._quarantine.publish()

    def commit(self) -> Mapping[str, OutputManifest]:
        """Make everything visible, and return the manifest of each output; when it raises, nothing is."""
        self._check_open()
        with Unwind() as unwind:
            unwind.push(self.abort)
            manifests = {name: each.finish() for name, each in self._outputs.items()}
            for each in self._staged():
                each.publish()
                unwind.push(each.withdraw)
            unwind.release()
        self._over = True
        return manifests

    def abort(self) -> None:
        """Remove everything staged. Does nothing the second time, or after a commit."""
        if self._over:
            return
        self._over = True
        with Unwind() as unwind:
            for each in self._staged():
                unwind.push(each.discard)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unwind = Unwind()
        unwind.push(self.abort)
        unwind.__exit__(kind, error, trace)

    def _staged(self) -> list[StagedOutput | Quarantine]:
        # The quarantine comes first: outputs without the account of what they lack must never be seen.
        return [*([self._quarantine] if self._quarantine else []), *self._outputs.values()]

    def _check_open(self) -> None:
        if self._over:
            raise RunError("this session is over: it was committed or aborted")


def _check_apart(paths: Sequence[str]) -> None:
    """An output appears by one rename, so nothing else may be written at its path or below."""
    for one, other in permutations(map(local_path, paths), 2):
        if one == other or one in other.parents:
            raise ArgumentError(f"cannot write both {one} and {other}: expected paths apart from each other")
