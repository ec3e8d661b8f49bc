"""One part file on its way: hidden, written here or by a thread of its own, finished with its sums."""

from __future__ import annotations

import hashlib
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Protocol

import pyarrow as pa

from treadle.kernel.unwind import Unwind
from treadle.storage.atomic import remove, write_failure
from treadle.storage.dataset import OutputSpec, Rows
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.unit_record import StagedFile

_WAITING = 2


class OpenPart(Protocol):
    """A part file that is being written."""

    def write(self, rows: Rows) -> None:
        """Append rows. Raises RunError with the path."""

    def end(self) -> None:
        """No more rows come; what is left to do may go on behind."""

    def finish(self) -> StagedFile:
        """The whole file, synced. Raises RunError with the path, also for rows that were taken before."""

    def abandon(self) -> None:
        """Throw the file away."""


class Part:
    """A part file written by whoever calls. See `OpenPart`. Raises RunError when it cannot be made."""

    def __init__(self, path: Path, output: str, lane: int, spec: OutputSpec) -> None:
        self._path = path
        self._output = output
        self._lane = lane
        self._backend = write_backend_for(spec.backend)
        self._rows = 0
        self._checked = pa.schema([])
        with write_failure(path):
            self._writer = self._backend.open_part(path, spec)

    def write(self, rows: Rows) -> None:
        """Append rows; a schema that the format cannot hold is refused before it meets it."""
        with write_failure(self._path):
            if isinstance(rows, (pa.RecordBatch, pa.Table)):
                self._check(rows.schema)
            self._writer.write(pa.table(rows) if isinstance(rows, pa.RecordBatch) else rows)
            self._check(self._writer.schema)
        self._rows += rows.num_rows if isinstance(rows, (pa.RecordBatch, pa.Table)) else len(rows)

    def end(self) -> None:
        """Nothing to do."""

    def finish(self) -> StagedFile:
        """Close the file and take its sums."""
        with write_failure(self._path):
            self._writer.close()
        return staged_file(self._output, self._path, self._lane, self._rows, self._writer.schema)

    def abandon(self) -> None:
        """Let go of the file and remove it."""
        with Unwind() as unwind:
            unwind.push(remove, self._path)
            self._writer.abandon()

    def _check(self, schema: pa.Schema) -> None:
        if schema.equals(self._checked):
            return
        reason = self._backend.unwritable(schema)
        if reason is not None:
            raise ValueError(reason)
        self._checked = schema


class ThreadedPart:
    """A part file written by a thread of its own, a few writes behind. See `OpenPart`.

    What fails there is raised by the next call. The thread ends with `finish` or `abandon`.
    """

    def __init__(self, part: Part, name: str) -> None:
        self._part = part
        self._queue: Queue[Rows | None] = Queue(_WAITING)
        self._error: BaseException | None = None
        self._staged: StagedFile | None = None
        self._dropped = Event()
        self._ended = False
        # A daemon, so that a program that lets go of a part without ending it can still exit.
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def write(self, rows: Rows) -> None:
        """Hand rows over, waiting while there are too many."""
        self._raise()
        self._queue.put(rows)

    def end(self) -> None:
        """Let the thread finish the file."""
        if not self._ended:
            self._ended = True
            self._queue.put(None)

    def finish(self) -> StagedFile:
        """Wait for the thread."""
        self.end()
        self._thread.join()
        self._raise()
        assert self._staged is not None  # noqa: S101 - there was no error
        return self._staged

    def abandon(self) -> None:
        """Drop what waits, wait for the thread, remove the file."""
        self._dropped.set()
        self.end()
        self._thread.join()
        self._part.abandon()

    def _run(self) -> None:
        # Takes everything to the end, so that nobody waits forever to hand something over.
        while (rows := self._queue.get()) is not None:
            if self._error is None and not self._dropped.is_set():
                self._noting(rows)
        if self._error is None and not self._dropped.is_set():
            self._noting(None)

    def _noting(self, rows: Rows | None) -> None:
        try:
            if rows is not None:
                self._part.write(rows)
            else:
                self._staged = self._part.finish()
        except BaseException as error:  # noqa: BLE001 - raised by the next call
            self._error = error

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


def staged_file(output: str, path: Path, lane: int, rows: int, schema: pa.Schema) -> StagedFile:
    """The file at `path` with its sums. Raises RunError with the path when it cannot be read."""
    with write_failure(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    return StagedFile(output, str(path), lane, rows, size, digest, schema)
