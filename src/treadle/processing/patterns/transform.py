"""Run type `transform`: a chain of row transforms over the units of one input, in three stages.

Each unit gives one file of the output "rows". Rows that are read as records stay records, so that jsonl
becomes jsonl without a table between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.domain.result import Counters
from treadle.domain.row_step import RowStep
from treadle.processing.chain import Chain, Chained
from treadle.processing.row_transforms import NamedTransform, bind_steps, read_transforms
from treadle.processing.sections import only_input
from treadle.processing.streams import units_of
from treadle.processing.units import UnitRun, run_units
from treadle.storage import RowBatch

if TYPE_CHECKING:
    from treadle.processing.job import Job


def run_transform(job: Job) -> Counters:
    """Transform the input, whatever its name.

    Raises:
        ManifestError: see `check_transform`.
        RunError: a column is missing, too many bad rows, or a function of batches gave more rows than it got.
    """
    work = TransformWork(read_transforms(job.manifest))
    name = only_input(job.manifest)
    run_units(job, "main", job.plan.inputs[name], units_of(job, name), work)
    return job.account.close()


class TransformWork:
    """The chain over one unit after another; its functions are imported once in each worker."""

    def __init__(self, transforms: Sequence[NamedTransform]) -> None:
        self._transforms = tuple(transforms)
        self._steps: tuple[RowStep, ...] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Without the functions, which a worker imports for itself."""
        return {"_transforms": self._transforms, "_steps": None}

    def __call__(self, run: UnitRun) -> None:
        """Transform the unit."""
        if self._steps is None:
            self._steps = bind_steps(run.manifest, self._transforms)
        chain = Chain(self._steps, json=run.plan.outputs["rows"].backend == "jsonl")
        run.three_stages(lambda batch: (batch, chain(batch)), lambda item: _write(run, *item))


def _write(run: UnitRun, batch: RowBatch, done: Chained) -> None:
    run.settle(batch, out=done.out, filtered=done.filtered, rejects=done.rejects, extra=done.extra)
    if len(done.rows):
        run.write("rows", done.rows)
