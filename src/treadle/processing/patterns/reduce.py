"""Run type `reduce`: sums of some columns over groups of equal keys."""

from __future__ import annotations

from treadle.domain.reduce import SumFold
from treadle.domain.result import Counters
from treadle.manifest import Manifest
from treadle.processing.account import Account
from treadle.processing.checks import check_datasets, required_section, setting_errors_at
from treadle.processing.job import WHOLE, Job
from treadle.processing.streams import fold_input, run_errors_at


def check_reduce(manifest: Manifest) -> None:
    """Raises ManifestError: no section `reduce`, keys and sums at odds, a dataset missing or unknown."""
    check_datasets(manifest, inputs={"rows"}, outputs={"sums"})
    _fold(manifest)


def run_reduce(job: Job) -> Counters:
    """Input "rows" to output "sums": one file, `reduce.keys` then `reduce.sums`, sorted by keys.

    Memory is bounded by the number of keys. Every row read counts as out: it is summed into the output.
    The counter `groups` says how many rows the output has.

    Raises:
        ManifestError: the section `reduce` or a dataset is missing or unknown.
        RunError: a column is missing or cannot be summed, or too many bad rows.
    """
    fold = _fold(job.manifest)
    account = Account(job)
    fold_input(job, "rows", account, fold.add)
    with job.timed("process"), run_errors_at(job.plan.inputs["rows"].path):
        sums = fold.result()
    account.note("groups", sums.num_rows)
    if sums.num_columns:
        with job.timed("write"):
            job.session.write("sums", WHOLE, sums)
    return account.close()


def _fold(manifest: Manifest) -> SumFold:
    section = required_section(manifest, "reduce", manifest.reduce)
    with setting_errors_at(manifest, "reduce"):
        return SumFold(section.keys, section.sums)
