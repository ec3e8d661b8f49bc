"""Run type `dedup`: of rows that are the same only the first is kept."""

from __future__ import annotations

from treadle.domain.result import Counters
from treadle.extras import check_extra
from treadle.manifest import Manifest
from treadle.manifest.model import DedupSection
from treadle.processing.checks import check_datasets
from treadle.processing.dedup_work import (
    MEMORY_ROWS,
    DigestUnit,
    FilterUnit,
    GroupDigests,
    GroupSignatures,
    content_of,
    drops_of,
    starts_of,
)
from treadle.processing.folding import check_input_columns
from treadle.processing.job import Job
from treadle.processing.shuffle import bucket_units, spills_of
from treadle.processing.streams import units_of
from treadle.processing.unit_run import UnitWork
from treadle.processing.units import run_units


def check_dedup(manifest: Manifest) -> None:
    """Raises ManifestError: a dataset missing or unknown; MissingExtraError: minhash without its extra."""
    check_datasets(manifest, inputs={"rows"}, outputs={"rows"}, optional={"duplicates"})
    section = _section(manifest)
    check_input_columns(manifest, "rows", section.columns)
    if section.method == "minhash":
        check_extra("dedup", "dedup.method minhash", "rensa")


def run_dedup(job: Job) -> Counters:
    """Input "rows" to output "rows", a file a unit, without the rows that are the same as an earlier one.

    Three phases: each unit is reduced to digests (or signatures) of its rows; equal ones are grouped, bucket
    by bucket of their hash; each unit is read again and written without its duplicates. The first of a group
    is kept, in the order of units and rows. A duplicate counts as filtered. The optional output "duplicates"
    has for each: source, line, of_source and of_line (the row that is kept), group (the number of that row in
    the whole input, from 0) and, for minhash, similarity.

    Memory: 100 bytes a row for at most some 2 million rows; for minhash all signatures, 4 bytes times
    `dedup.permutations` a row.

    Raises:
        ManifestError: a dataset is missing or unknown.
        RunError: a column is missing, or too many bad rows.
    """
    section = _section(job.manifest)
    units, dataset = units_of(job, "rows"), job.plan.inputs["rows"]
    look = run_units(job, "look", dataset, units, DigestUnit(section), counted=False)
    spills = spills_of(look, "digests")
    rows = sum(each.rows for each in spills)
    exact = section.method != "minhash"
    buckets = max(1, -(-rows // MEMORY_ROWS)) if exact else 1
    work: UnitWork = GroupDigests(spills, buckets) if exact else GroupSignatures(spills, section)
    groups = run_units(job, "group", None, bucket_units(spills, buckets), work, counted=False)
    drops = spills_of(groups, "drops")
    sources = tuple(unit.source for unit in units)
    keep = FilterUnit(section, drops_of(drops), starts_of(look), sources)
    run_units(job, "main", dataset, units, keep, depends=content_of(*spills, *drops))
    return job.account.close()


def _section(manifest: Manifest) -> DedupSection:
    return manifest.dedup or DedupSection()
