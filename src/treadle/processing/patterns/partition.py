"""Run type `partition`: a transform over shards, in three stages.

Each unit of the main input gives one file of the output "rows" and, when it is declared, one of the output
"registry": the terms that the transform counted in the unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from treadle.domain.result import Counters, ProcessResult, Transform
from treadle.domain.term_registry import TermRegistry
from treadle.errors import RunError
from treadle.processing.checks import setting_errors_at
from treadle.processing.sections import main_input
from treadle.processing.streams import identity_of, units_of
from treadle.processing.transforms import TransformOptions, read_transform
from treadle.processing.units import UnitRun, run_units
from treadle.storage import RowBatch, read_table

if TYPE_CHECKING:
    from treadle.processing.job import Job


def run_partition(job: Job) -> Counters:
    """Transform the main input: the only one that is not a side input of the transform.

    Raises:
        ManifestError: an unknown transform or option, a dataset missing or unknown.
        RunError: a column is missing, too many bad rows, or a registry is asked of a transform that keeps
            none.
    """
    options = read_transform(job.manifest)
    main = main_input(job.manifest, options)
    work = PartitionWork(options, keeps_registry="registry" in job.plan.outputs)
    depends = identity_of(job, options.side_inputs)
    run_units(job, "main", job.plan.inputs[main], units_of(job, main), work, depends=depends)
    return job.account.close()


class _Transformed(NamedTuple):
    batch: RowBatch
    result: ProcessResult


class PartitionWork:
    """The transform over one unit after another; it is bound to its side inputs once in each worker."""

    def __init__(self, options: TransformOptions, *, keeps_registry: bool) -> None:
        self._options = options
        self._keeps_registry = keeps_registry
        self._transform: Transform | None = None

    def __call__(self, run: UnitRun) -> None:
        """Transform the unit, then write the terms that were counted in it."""
        transform = self._transform = self._transform or self._bound(run)
        terms = _Terms(kept=self._keeps_registry)
        run.three_stages(
            lambda batch: terms.counted(_Transformed(batch, _checked(transform(batch.rows)))),
            lambda item: _write(run, item),
        )
        if terms.registry is not None:
            run.write("registry", terms.registry.to_table())

    def _bound(self, run: UnitRun) -> Transform:
        side = {name: read_table(run.plan.inputs[name]) for name in self._options.side_inputs}
        with setting_errors_at(run.manifest, "transform"):
            return self._options.bind(side)


class _Terms:
    """Adds up the terms of one unit, when they are to be kept."""

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self.registry: TermRegistry | None = None

    def counted(self, item: _Transformed) -> _Transformed:
        """The same item."""
        state = item.result.state
        if self._kept:
            if state is None:
                raise RunError("the transform keeps no registry: remove outputs.registry from the manifest")
            self.registry = state if self.registry is None else self.registry + state
        return item


def _checked(result: ProcessResult) -> ProcessResult:
    if not isinstance(result, ProcessResult):
        raise RunError(f"the transform gave {type(result).__name__}, expected a ProcessResult")
    if set(result.outputs) != {"rows"}:
        raise RunError(f"the transform gave the outputs {sorted(result.outputs)}, expected 'rows' alone")
    return result


def _write(run: UnitRun, item: _Transformed) -> None:
    rows, counters = item.result.outputs["rows"], item.result.counters
    run.settle(
        item.batch,
        out=len(rows),
        filtered=counters.filtered,
        rejects=item.result.rejects,
        extra=counters.extra,
    )
    run.write("rows", rows)
