"""One unit of work, wherever it runs: its rows in, its rows out, its account.

A `UnitWork` says what is done with a unit and is called with a `UnitRun`. The unit's files are finished when
it returns, and thrown away when it raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from treadle.domain.result import Counters, Reject
from treadle.errors import ArgumentError, MissingColumnError, RunError, StoppedError, TreadleError
from treadle.fray import stop_requested
from treadle.kernel.unwind import add_note
from treadle.manifest import Manifest
from treadle.processing.account import batch_counters, named_counts
from treadle.processing.collecting import rare_collections
from treadle.processing.compile import StoragePlan
from treadle.processing.context import RunContext
from treadle.processing.pipeline import run_three_stages
from treadle.processing.placing import errors_placed_in, name_of
from treadle.processing.rejections import Rejections, rejected_rows
from treadle.storage import Dataset, RowBatch, Staging, UnitRecord, UnitWriter, WorkUnit, read_batches
from treadle.storage.dataset import Rows
from treadle.storage.passing import is_of_storage
from treadle.telemetry import UnitMeter, UnitReport

A = TypeVar("A")


@dataclass(frozen=True)
class Phase:
    """One pass over some units; everything a worker must know of the run, and nothing that cannot be sent.

    `depends` stands for what its results are made of beside the content of a unit, "" for nothing else.
    """

    name: str
    depends: str
    dataset: Dataset | None
    counted: bool
    manifest: Manifest
    ctx: RunContext
    plan: StoragePlan
    staging: Staging
    batch_rows: int

    @property
    def spans(self) -> bool:
        """Whether it is noted when each stage of a unit worked, for the trace."""
        return self.manifest.metrics.trace is not None


class UnitRun:
    """What the work has to do with its unit. Its methods are for the thread that called the work."""

    def __init__(
        self,
        phase: Phase,
        unit: WorkUnit,
        writer: UnitWriter,
        meter: UnitMeter,
        bad_rows_left: int | None = None,
    ) -> None:
        self.unit = unit
        self._phase = phase
        self._writer = writer
        self._meter = meter
        self._bad_rows_left = bad_rows_left
        self._rejections = Rejections(phase.manifest.errors, writer.reject)
        self.counters = Counters()

    @property
    def counted(self) -> bool:
        """Whether the rows of this phase are part of the account."""
        return self._phase.counted

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run."""
        return self._phase.manifest

    @property
    def ctx(self) -> RunContext:
        """The context of the run."""
        return self._phase.ctx

    @property
    def plan(self) -> StoragePlan:
        """What the run reads and writes."""
        return self._phase.plan

    @property
    def first_reasons(self) -> Sequence[str]:
        """Why the first few rejected rows were rejected, each with its place."""
        return tuple(self._rejections.first_reasons)

    def three_stages(self, process: Callable[[RowBatch], A], write: Callable[[A], object]) -> None:
        """Read in one thread, `process` each batch in another, and `write` what that gives here, in order.

        `process` sees only batches with rows. Its errors are placed in the file and lines of the batch. When
        a column that it needs is missing, the rows of the batch are rejected, unless the manifest says
        `fail`.
        """
        run_three_stages(
            self._read,
            lambda batch: self._process(process, batch),
            lambda item: item.refuse(self) if isinstance(item, _Refused) else write(item),
            depth=self.manifest.parallelism.queue_depth,
            timed=self.timed,
            depths=self._meter.queue,
            weigh=lambda batch: batch.size,
        )

    def settle(
        self,
        batch: RowBatch,
        *,
        out: int,
        filtered: int = 0,
        rejects: Sequence[Reject] = (),
        extra: Mapping[str, int] | None = None,
    ) -> None:
        """Record what became of the rows of `batch`; its bad rows are rejected along with `rejects`, by line.

        Raises:
            AccountError: the rows of the batch are not out + filtered + rejects, or `extra` has such a name.
            BadRowError: there is a rejected row, and the manifest says `fail`.
            ArgumentError: the phase is not counted.
        """
        if not self._phase.counted:
            raise ArgumentError(f"phase {self._phase.name}: it is not counted, so there is nothing to settle")
        self._count(batch_counters(batch, out, filtered, rejects, extra or {}))
        rejected = list(rejected_rows(batch, rejects))
        for each in rejected:
            self._meter.reject(each.kind)
        self._rejections.take(rejected)
        if self._bad_rows_left is not None and self.counters.rejected > self._bad_rows_left:
            raise _Enough

    def see_rejected(self, batch: RowBatch, rejects: Sequence[Reject] = ()) -> None:
        """In a phase that is not counted: leave the bad rows of `batch` and `rejects` to the one that is.

        Raises:
            BadRowError: there is one, and the manifest says `fail`; it names the first, by line.
        """
        if not self._phase.counted and self.manifest.errors.on_bad_row == "fail":
            self._rejections.take(rejected_rows(batch, rejects))

    def note(self, name: str, count: int) -> None:
        """Add to one of the further sums of the run, such as the number of terms."""
        self._count(Counters(extra={name: count}))

    def write(self, output: str, rows: Rows) -> None:
        """Append rows to the file of this unit in an output, or in one of the scratch outputs."""
        self._writer.write(output, rows)

    def timed(self, stage: str) -> AbstractContextManager[object]:
        """A block whose seconds count as those of `stage` (read, process, write)."""
        return self._meter.stage(stage)

    def _count(self, counters: Counters) -> None:
        self.counters += counters
        self._meter.add_all(named_counts(counters))

    def _read(self) -> Iterator[RowBatch]:
        if self._phase.dataset is None:
            raise ArgumentError(f"phase {self._phase.name}: it has no dataset to read batches of")
        batches = read_batches(self._phase.dataset, self.unit, self._phase.batch_rows)
        for batch in read_errors_placed(batches, self.unit):
            raise_if_stopped(self.ctx)
            self._meter.batch(batch.num_rows)
            yield batch

    def _process(self, process: Callable[[RowBatch], A], batch: RowBatch) -> A | _Refused:
        made = self._made(process, batch) if batch.num_rows else _Refused(batch)
        self.see_rejected(batch)  # not before: the work may have refused an earlier line
        return made

    def _made(self, process: Callable[[RowBatch], A], batch: RowBatch) -> A | _Refused:
        with errors_placed_in(batch):
            try:
                return process(batch)
            except MissingColumnError as error:
                if self.manifest.errors.on_bad_row == "fail":
                    raise
                return _Refused(batch, error)


class UnitWork(Protocol):
    """What is done with one unit, wherever it runs.

    The same object is called for all units that a worker gets, so what it loads at its first call stays
    there. It is pickled before its first call.
    """

    def __call__(self, run: UnitRun) -> None:
        """Read the unit's batches, write its rows, settle its account."""
        ...


@dataclass(frozen=True)
class _Refused:
    """A batch of which no row can be used."""

    batch: RowBatch
    error: MissingColumnError | None = None

    def refuse(self, run: UnitRun) -> None:
        if not run.counted:
            return
        reason = str(self.error)
        rejects = [Reject(index, reason, "missing-column") for index in range(self.batch.num_rows)]
        run.settle(self.batch, out=0, rejects=rejects)


class _Enough(Exception):  # noqa: N818 - no error: the word by which a unit with too many bad rows is left
    pass


@dataclass(frozen=True)
class UnitResult:
    """A unit that was worked on; not `complete` when it was left because of too many bad rows."""

    record: UnitRecord
    complete: bool
    counters: Counters
    seconds: float
    first_reasons: Sequence[str]
    report: UnitReport


def carry_out(
    phase: Phase, work: UnitWork, unit: WorkUnit, meter: UnitMeter, bad_rows_left: int | None
) -> UnitResult:
    """Do the work with one unit, here.

    What it raises is raised; an error that does not say where it arose gets a note that names the unit.
    """
    since = time.perf_counter()
    with rare_collections(), phase.staging.open_unit(unit, phase.name, phase.depends) as writer:
        run = UnitRun(phase, unit, writer, meter, bad_rows_left)
        complete = _worked(work, run)
        with meter.stage("write"):
            record = writer.finish(named_counts(run.counters), complete=complete)
    meter.add("bytes_read", unit.bytes)
    meter.add("bytes_written", sum(each.bytes for each in record.files))
    seconds = time.perf_counter() - since
    return UnitResult(record, complete, run.counters, seconds, run.first_reasons, meter.report())


def _worked(work: UnitWork, run: UnitRun) -> bool:
    """Whether the work went to its end; False when it was left because of too many bad rows."""
    try:
        work(run)
    except _Enough:
        return False
    except Exception as error:
        if not isinstance(error, TreadleError) and not hasattr(error, "__notes__"):  # they name the place
            add_note(error, f"while working on unit {name_of(run.unit)}")
        raise
    return True


def read_errors_placed(batches: Iterator[RowBatch], unit: WorkUnit) -> Iterator[RowBatch]:
    """The batches; a file that is gone, or a storage that fails, is a RunError that names the unit."""
    try:
        yield from batches
    except Exception as error:
        if isinstance(error, TreadleError) or not is_of_storage(error):
            raise
        raise RunError(
            f"unit {unit.id}: {unit.source} cannot be read: {error}; see that it is there and may be read "
            "where the unit is worked on, and run again"
        ) from error


def raise_if_stopped(ctx: RunContext) -> None:
    """Raise StoppedError when the step that this run belongs to was asked to stop."""
    if stop_requested():
        raise StoppedError(f"step {ctx.step_id}: asked to stop; nothing of it is visible")
