"""Run type `mapping`: the registries of a partition become one mapping, term to id."""

from __future__ import annotations

import pyarrow as pa

from treadle.domain.mapping import number_terms
from treadle.domain.result import Counters
from treadle.manifest.model import MappingSection
from treadle.processing.folding import Partials, fold_units, merge_buckets
from treadle.processing.job import WHOLE, Job
from treadle.processing.placing import run_errors_at
from treadle.processing.sections import TERMS
from treadle.processing.shuffle import read_scratch

MEMORY_ROWS = 1_000_000


def run_mapping(job: Job) -> Counters:
    """Input "registry" (term, count, documents; any number of files) to output "mapping", one file.

    The registries are summed unit by unit, and bucket by bucket where there are many terms; then the terms
    are numbered, all of them in memory. The ids are the same however the registry is cut. Every good row
    counts as out: it is summed into the mapping. One whose term is no text, or whose counts are no whole
    numbers, is bad. The counters `terms` and `terms_dropped` say how many terms got an id, and how many did
    not by `mapping.min_count` and `mapping.max_terms`.

    Raises:
        ManifestError: a dataset missing or unknown.
        RunError: a column is missing, a sum does not fit, or too many bad rows.
    """
    section = job.manifest.mapping or MappingSection()
    partials = fold_units(job, "registry", TERMS, MEMORY_ROWS)
    totals = _totals(job, partials)
    with job.timed("process"), run_errors_at(job.plan.inputs["registry"].path):
        mapping = number_terms(totals, min_count=section.min_count, max_terms=section.max_terms)
    job.account.note("terms", mapping.num_rows)
    job.account.note("terms_dropped", totals.num_rows - mapping.num_rows)
    with job.timed("write"):
        job.session.write("mapping", WHOLE, mapping)
    return job.account.close()


def _totals(job: Job, partials: Partials) -> pa.Table:
    """Each term once, in no order that matters."""
    buckets = partials.choose_buckets()
    if buckets == 1:
        with job.timed("process"), run_errors_at(partials.path):
            return partials.bucket(0, 1).result()
    return read_scratch(merge_buckets(job, partials, buckets, "merged"), "merged")
