"""Reading the inputs of a run, batch by batch, in the order of units."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa

from treadle.errors import ArgumentError, RunError, StoppedError
from treadle.fray import stop_requested
from treadle.processing.account import Account, place_of
from treadle.processing.job import Job
from treadle.processing.pipeline import timed_items
from treadle.storage import RowBatch, WorkUnit, list_units, read_batches


def units_of(job: Job, name: str) -> tuple[WorkUnit, ...]:
    """The units of the input `name`, sorted by path."""
    return list_units(job.plan.inputs[name])


def batches_of(job: Job, name: str, unit: WorkUnit) -> Iterator[RowBatch]:
    """The batches of one unit of the input `name`; the time they take to come counts as reading."""
    batches = read_batches(job.plan.inputs[name], unit, job.manifest.parallelism.batch_rows)
    for batch in timed_items(batches, job.timed, "read"):
        raise_if_stopped(job)
        yield batch


def raise_if_stopped(job: Job) -> None:
    """Raise StoppedError when the step that this run belongs to was asked to stop."""
    if stop_requested():
        raise StoppedError(f"step {job.ctx.step_id}: asked to stop; nothing of it is visible")


def fold_input(job: Job, name: str, account: Account, take: Callable[[pa.RecordBatch], object]) -> None:
    """Give `take` all rows of the input `name`; each of them counts as out."""
    for unit in units_of(job, name):
        for batch in batches_of(job, name, unit):
            if batch.rows.num_rows:
                with job.timed("process"), errors_placed_in(batch):
                    take(batch.rows)
            account.settle(unit, batch, out=batch.rows.num_rows)
        account.end_unit(unit)


@contextmanager
def run_errors_at(place: str) -> Iterator[None]:
    """An error of the block that the rows caused becomes a RunError that begins with `place`."""
    try:
        yield
    except (ArgumentError, pa.ArrowException) as error:
        raise RunError(f"{place}: {error}") from error


def check_columns(batch: RowBatch, names: Collection[str]) -> None:
    """Raise RunError when the rows lack one of the columns."""
    for name in names:
        if name not in batch.rows.schema.names:
            known = ", ".join(batch.rows.schema.names)
            raise RunError(f"{batch.source}: expected a column {name!r}, found the columns {known}")


@contextmanager
def errors_placed_in(batch: RowBatch) -> Iterator[None]:
    """Add the file and the lines of `batch` to an error of the block, which sees rows only.

    An error that the rows caused becomes a RunError; any other error gets a note.
    """
    try:
        with run_errors_at(place_of(batch)):
            yield
    except RunError:
        raise
    except Exception as error:
        error.add_note(f"while working on {place_of(batch)}")
        raise
