"""Run type `dedup`: of rows that are the same only the first is kept."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from treadle.domain.result import Counters
from treadle.processing.dedup_filter import FilterUnit, drops_of
from treadle.processing.dedup_group import GroupDigests, GroupSignatures
from treadle.processing.dedup_look import MEMORY_ROWS, DigestUnit, starts_of
from treadle.processing.sections import dedup_section
from treadle.processing.shuffle import Spill, bucket_units, spills_of
from treadle.processing.streams import units_of
from treadle.processing.unit_run import UnitWork
from treadle.processing.units import run_units

if TYPE_CHECKING:
    from treadle.processing.job import Job


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
    section = dedup_section(job.manifest)
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
    run_units(job, "main", dataset, units, keep, depends=_content_of(*spills, *drops))
    return job.account.close()


def _content_of(*spills: Spill) -> str:
    """Text that changes with the content of the files."""
    return sha256("".join(each.sha256 for each in spills).encode()).hexdigest()
