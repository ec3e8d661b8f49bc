"""Run type `mapping`: the registries of a partition become one mapping, term to id."""

from __future__ import annotations

from treadle.domain.mapping import build_mapping
from treadle.domain.reduce import SumFold
from treadle.domain.result import Counters
from treadle.manifest import Manifest
from treadle.manifest.model import MappingSection
from treadle.processing.account import Account
from treadle.processing.checks import check_datasets
from treadle.processing.job import WHOLE, Job
from treadle.processing.streams import fold_input, run_errors_at


def check_mapping(manifest: Manifest) -> None:
    """Raises ManifestError: a dataset missing or unknown."""
    check_datasets(manifest, inputs={"registry"}, outputs={"mapping"})


def run_mapping(job: Job) -> Counters:
    """Input "registry" (term, count, documents, in any number of files) to output "mapping", one file.

    Every row read counts as out: it is summed into the mapping. The counters `terms` and `terms_dropped`
    say how many terms got an id, and how many did not by `mapping.min_count` and `mapping.max_terms`.

    Raises:
        ManifestError: a dataset missing or unknown.
        RunError: a column is missing or of the wrong type, or too many bad rows.
    """
    section = job.manifest.mapping or MappingSection()
    account = Account(job)
    totals = SumFold(("term",), ("count", "documents"))
    fold_input(job, "registry", account, totals.add)
    with job.timed("process"), run_errors_at(job.plan.inputs["registry"].path):
        registry = totals.result()
        parts = [registry] if registry.num_columns else []
        mapping = build_mapping(parts, min_count=section.min_count, max_terms=section.max_terms)
    account.note("terms", mapping.num_rows)
    account.note("terms_dropped", registry.num_rows - mapping.num_rows)
    with job.timed("write"):
        job.session.write("mapping", WHOLE, mapping)
    return account.close()
