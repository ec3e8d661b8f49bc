"""Run type `reduce`: aggregates of some columns over groups of equal keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.domain.result import Counters
from treadle.processing.folding import fold_units, merge_buckets
from treadle.processing.sections import reduce_grouping, reduce_section

if TYPE_CHECKING:
    from treadle.processing.job import Job


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
    section = reduce_section(job.manifest)
    partials = fold_units(job, "rows", reduce_grouping(job.manifest), section.memory_rows)
    records = merge_buckets(job, partials, section.buckets or partials.choose_buckets(), "sums")
    job.account.note("groups", sum(file.rows for record in records for file in record.files))
    return job.account.close()
