"""Run type `reduce`: aggregates of some columns over groups of equal keys."""

from __future__ import annotations

from treadle.domain.grouping import Aggregate, Grouping
from treadle.domain.result import Counters
from treadle.errors import ArgumentError
from treadle.manifest import Manifest
from treadle.manifest.model import ReduceSection
from treadle.processing.checks import check_datasets, required_section, setting_errors_at
from treadle.processing.folding import check_input_columns, fold_units, merge_buckets
from treadle.processing.job import Job


def check_reduce(manifest: Manifest) -> None:
    """Raises ManifestError: no section `reduce`, names at odds, a dataset missing or unknown."""
    check_datasets(manifest, inputs={"rows"}, outputs={"sums"})
    grouping = _grouping(manifest, _section(manifest))
    check_input_columns(manifest, "rows", grouping.columns)


def run_reduce(job: Job) -> Counters:
    """Input "rows" to output "sums": the keys, `reduce.sums`, `reduce.aggregates`; each file sorted by keys.

    Each unit is folded on its own and its groups are spread over buckets by a hash of the key; each bucket
    makes one file. `reduce.buckets` null: one bucket when there are about `reduce.memory_rows` groups or
    fewer, else as many as it takes. Memory: that of some `memory_rows` groups, and the values of lists.
    Every row read counts as out: it is part of its group. The counter `groups` says how many there are.

    Raises:
        ManifestError: the section `reduce` or a dataset is missing or unknown.
        RunError: a column is missing or of a wrong kind, a sum does not fit, or too many bad rows.
    """
    section = _section(job.manifest)
    partials = fold_units(job, "rows", _grouping(job.manifest, section), section.memory_rows)
    records = merge_buckets(job, partials, section.buckets or partials.choose_buckets(), "sums")
    job.account.note("groups", sum(file.rows for record in records for file in record.files))
    return job.account.close()


def _section(manifest: Manifest) -> ReduceSection:
    return required_section(manifest, "reduce", manifest.reduce)


def _grouping(manifest: Manifest, section: ReduceSection) -> Grouping:
    asked = {name: Aggregate(each.function, each.column) for name, each in section.aggregates.items()}
    with setting_errors_at(manifest, "reduce"):
        if twice := sorted({name for name in section.sums if section.sums.count(name) > 1 or name in asked}):
            raise ArgumentError(f"sums and aggregates must be distinct, {', '.join(twice)} is there twice")
        return Grouping(section.keys, {name: Aggregate("sum", name) for name in section.sums} | asked)
