"""Run type `reduce`: sums of some columns over groups of equal keys."""

from __future__ import annotations

from treadle.domain.reduce import SumFold
from treadle.domain.result import Counters
from treadle.processing.account import Account
from treadle.processing.declared import declared, needed, settings_of
from treadle.processing.job import WHOLE, Job
from treadle.processing.streams import fold_input


def run_reduce(job: Job) -> Counters:
    """Input "rows" to output "sums": one file, `reduce.keys` then `reduce.sums`, sorted by keys.

    Memory is bounded by the number of keys. A row that comes in counts as out: it is summed into the output.
    The counter `groups` says how many rows the output has.

    Raises:
        ManifestError: the section `reduce` or a dataset is missing or unknown.
        RunError: a column is missing or cannot be summed, or too many bad rows.
    """
    section = needed(job.manifest, "reduce", job.manifest.reduce)
    declared(job.manifest, inputs={"rows"}, outputs={"sums"})
    with settings_of(job.manifest, "reduce"):
        fold = SumFold(section.keys, section.sums)
    account = Account(job)
    fold_input(job, "rows", account, fold.add)
    with job.timed("process"):
        sums = fold.result()
    account.note("groups", sums.num_rows)
    if sums.num_columns:
        with job.timed("write"):
            job.session.write("sums", WHOLE, sums)
    return account.close()
