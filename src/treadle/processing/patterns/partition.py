"""Run type `partition`: a transform over shards, in three stages.

Each unit of the main input gives one file of the output "rows" and, when it is declared, one of the output
"registry": the terms that the transform counted in the unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from treadle.domain.result import Counters, ProcessResult, Transform
from treadle.domain.term_registry import TermRegistry
from treadle.errors import ManifestError, RunError
from treadle.manifest import Manifest
from treadle.processing.account import Account
from treadle.processing.checks import check_datasets, setting_errors_at
from treadle.processing.job import Job
from treadle.processing.pipeline import run_three_stages
from treadle.processing.streams import errors_placed_in, raise_if_stopped, units_of
from treadle.processing.transforms import TransformOptions, read_transform
from treadle.storage import RowBatch, WorkUnit, read_batches, read_table


class _Chunk(NamedTuple):
    unit: WorkUnit
    batch: RowBatch
    result: ProcessResult | None = None


class _UnitEnd(NamedTuple):
    unit: WorkUnit
    registry: pa.Table | None = None


def check_partition(manifest: Manifest) -> None:
    """Raises ManifestError: an unknown transform or option, a dataset missing or unknown."""
    options = read_transform(manifest)
    check_datasets(
        manifest,
        inputs={_main_input(manifest, options), *options.side_inputs},
        outputs={"rows"},
        optional={"registry"},
    )


def run_partition(job: Job) -> Counters:
    """Transform the main input: the only one that is not a side input of the transform.

    Raises:
        ManifestError: an unknown transform or option, a dataset missing or unknown.
        RunError: a column is missing, too many bad rows, or a registry is asked of a transform that keeps
            none.
    """
    options = read_transform(job.manifest)
    main = _main_input(job.manifest, options)
    transform = _bind(job, options)
    account = Account(job)
    run_three_stages(
        lambda: _read(job, main),
        _Processor(transform, keeps_registry="registry" in job.plan.outputs),
        lambda item: _write(job, account, item),
        depth=job.manifest.parallelism.queue_depth,
        timed=job.timed,
    )
    return account.close()


def _main_input(manifest: Manifest, options: TransformOptions) -> str:
    side = set(options.side_inputs)
    candidates = sorted(set(manifest.inputs) - side)
    if len(candidates) != 1:
        expected = "one input" + (f" beside {', '.join(sorted(side))}" if side else "")
        problem = manifest.problem("inputs", expected, ", ".join(candidates) or "none")
        raise ManifestError([problem])
    return candidates[0]


def _bind(job: Job, options: TransformOptions) -> Transform:
    side = {name: read_table(job.plan.inputs[name]) for name in options.side_inputs}
    with setting_errors_at(job.manifest, "transform"):
        return options.bind(side)


def _read(job: Job, main: str) -> Iterator[_Chunk | _UnitEnd]:
    dataset, batch_rows = job.plan.inputs[main], job.manifest.parallelism.batch_rows
    for unit in units_of(job, main):
        for batch in read_batches(dataset, unit, batch_rows):
            raise_if_stopped(job)
            yield _Chunk(unit, batch)
        yield _UnitEnd(unit)


class _Processor:
    """The middle stage: transforms the chunks, and adds up the terms of the current unit."""

    def __init__(self, transform: Transform, *, keeps_registry: bool) -> None:
        self._transform = transform
        self._keeps_registry = keeps_registry
        self._registry: TermRegistry | None = None

    def __call__(self, item: _Chunk | _UnitEnd) -> _Chunk | _UnitEnd:
        return self._end(item) if isinstance(item, _UnitEnd) else self._chunk(item)

    def _chunk(self, chunk: _Chunk) -> _Chunk:
        if not chunk.batch.rows.num_rows:
            return chunk
        with errors_placed_in(chunk.batch):
            result = self._transform(chunk.batch.rows)
        if not isinstance(result, ProcessResult):
            raise RunError(f"the transform gave {type(result).__name__}, expected a ProcessResult")
        if set(result.outputs) != {"rows"}:
            raise RunError(f"the transform gave the outputs {sorted(result.outputs)}, expected 'rows' alone")
        if self._keeps_registry:
            self._count(result.state)
        return chunk._replace(result=result)

    def _count(self, state: TermRegistry | None) -> None:
        if state is None:
            raise RunError("the transform keeps no registry: remove outputs.registry from the manifest")
        self._registry = state if self._registry is None else self._registry + state

    def _end(self, end: _UnitEnd) -> _UnitEnd:
        registry, self._registry = self._registry, None
        return end if registry is None else end._replace(registry=registry.to_table())


def _write(job: Job, account: Account, item: _Chunk | _UnitEnd) -> None:
    if isinstance(item, _Chunk):
        _write_chunk(job, account, item)
        return
    if item.registry is not None:
        job.session.write("registry", item.unit, item.registry)
    account.end_unit(item.unit)


def _write_chunk(job: Job, account: Account, chunk: _Chunk) -> None:
    if chunk.result is None:
        account.settle(chunk.unit, chunk.batch, out=0)
        return
    rows, counters = chunk.result.outputs["rows"], chunk.result.counters
    account.settle(
        chunk.unit,
        chunk.batch,
        out=rows.num_rows,
        filtered=counters.filtered,
        rejects=chunk.result.rejects,
        extra=counters.extra,
    )
    job.session.write("rows", chunk.unit, rows)
