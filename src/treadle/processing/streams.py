"""Reading the inputs of a run in this process, batch by batch, in the order of units."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from treadle.domain.result import Reject
from treadle.errors import MissingColumnError, RunError
from treadle.processing.pipeline import timed_items
from treadle.processing.placing import errors_placed_in
from treadle.processing.unit_run import raise_if_stopped, read_errors_placed
from treadle.storage import USUAL_BATCH_ROWS, RowBatch, WorkUnit, list_units, read_batches

if TYPE_CHECKING:
    from treadle.processing.job import Job


def units_of(job: Job, name: str) -> tuple[WorkUnit, ...]:
    """The units of the input `name`, sorted by path."""
    return list_units(job.plan.inputs[name])


def identity_of(job: Job, names: Collection[str]) -> str:
    """Changes with the content of those inputs: for work that depends on them beside its own unit."""
    return "\n".join(unit.identity for name in sorted(names) for unit in units_of(job, name))


def batches_of(job: Job, name: str, unit: WorkUnit) -> Iterator[RowBatch]:
    """The batches of one unit of the input `name`; the time they take to come counts as reading."""
    batches = read_batches(
        job.plan.inputs[name], unit, job.manifest.parallelism.batch_rows or USUAL_BATCH_ROWS
    )
    for batch in timed_items(read_errors_placed(batches, unit), job.timed, "read"):
        raise_if_stopped(job.ctx)
        yield batch


def check_columns(batch: RowBatch, names: Collection[str]) -> None:
    """Raise MissingColumnError when the rows lack one of the columns."""
    for name in names:
        if name not in batch.rows.schema.names:
            raise MissingColumnError(name, batch.rows.schema.names)


def lacking(job: Job, batch: RowBatch, names: Collection[str]) -> tuple[Reject, ...]:
    """A reject for each row when the rows lack one of the columns; none when they have all.

    Raises:
        RunError: one is missing, and the manifest says `fail`.
    """
    try:
        with errors_placed_in(batch):
            check_columns(batch, names)
    except RunError as error:
        if job.manifest.errors.on_bad_row == "fail":
            raise
        return tuple(Reject(row, str(error.__cause__), "missing-column") for row in range(batch.num_rows))
    return ()
