"""Run type `embed_train`: word vectors by skip-gram, a stateful fold of the weights over groups of sentences.

A group is a unit of the input "tokens". A first reading settles the account and counts the tokens of each
group; then every epoch reads and trains the groups in order, one group in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treadle.domain.columns import usable_tokens, vector_column
from treadle.domain.result import Counters, Reject
from treadle.domain.skipgram import GroupReport, Pass, init_weights, train_group, training_passes
from treadle.domain.skipgram_batches import Ids
from treadle.domain.skipgram_options import SkipGramOptions
from treadle.domain.skipgram_step import SkipGramWeights
from treadle.errors import RunError
from treadle.processing.account import Account
from treadle.processing.job import WHOLE, Job
from treadle.processing.placing import run_errors_at
from treadle.processing.sections import skipgram_options
from treadle.processing.streams import batches_of, lacking, units_of
from treadle.storage import RowBatch, WorkUnit, read_table

_NEEDED: Mapping[str, pa.DataType] = {"term_id": pa.int32(), "term": pa.string(), "count": pa.int64()}
_KEPT: Mapping[str, pa.DataType] = {**_NEEDED, "documents": pa.int64()}


def run_embed_train(job: Job) -> Counters:
    """Inputs "tokens" (tokens: list<string>) and "mapping" to the output "vectors".

    "mapping" has term_id, term, count, and documents where they are known; "vectors" is one file with the
    same columns and vector. A row with fewer than two known terms has no pair to learn from and is
    filtered. The counter `pairs` tells how many were trained on.

    Raises:
        ManifestError: a setting out of range, a dataset missing or unknown.
        RunError: an empty mapping or one with gaps, a column missing or of the wrong type, or too many bad
            rows.
    """
    options = skipgram_options(job.manifest)
    mapping = _read_mapping(job)
    groups = _Groups(job, mapping["term"].combine_chunks())
    account = job.account
    group_tokens = groups.survey(account)
    account.close()  # too many bad rows: say so before the long part
    weights = init_weights(mapping.num_rows, options.dimensions, job.manifest.runtime.seed)
    counts = mapping["count"].to_numpy()
    for turn, report in run_train_over_groups(job, weights, groups.read, group_tokens, counts, options):
        account.note("pairs", report.pairs)
        if turn.epoch == options.epochs - 1:
            account.end_unit(groups.units[turn.group])
    with job.timed("write"):
        vectors = mapping.append_column("vector", vector_column(weights.centers))
        job.session.write("vectors", WHOLE, vectors)
    return account.close()


def run_train_over_groups(
    job: Job,
    weights: SkipGramWeights,
    read_group: Callable[[int], Sequence[Ids]],
    group_tokens: Sequence[int],
    counts: NDArray[np.int64],
    options: SkipGramOptions,
) -> Iterator[tuple[Pass, GroupReport]]:
    """Train `weights` in place: in every epoch on every group in order, at a steadily falling learning rate.

    `group_tokens` are the sizes of the groups, `counts` those of the terms in the whole corpus. Each turn has
    a seed of its own, so it depends on the weights it starts from and on nothing else of the earlier turns.
    """
    for turn in training_passes(group_tokens, options.epochs):
        sequences = read_group(turn.group)
        seed = (job.manifest.runtime.seed, turn.epoch, turn.group)
        with job.timed("process"):
            report = train_group(weights, sequences, counts, options, seed=seed, progress=turn.progress)
        yield turn, report


class _Groups:
    """The units of the input "tokens" as sequences of term ids; terms without an id are left out."""

    def __init__(self, job: Job, terms: pa.Array[Any]) -> None:
        self.units = units_of(job, "tokens")
        self._job = job
        self._terms = terms

    def survey(self, account: Account) -> list[int]:
        """Settle the account of all rows; the number of tokens of each group."""
        return [sum(self._survey_unit(account, unit)) for unit in self.units]

    def read(self, group: int) -> list[Ids]:
        """The sequences of one group, of at least two terms each."""
        batches = batches_of(self._job, "tokens", self.units[group])
        return [each for batch in batches for each in self._sequences(batch)[0]]

    def _survey_unit(self, account: Account, unit: WorkUnit) -> Iterator[int]:
        for batch in batches_of(self._job, "tokens", unit):
            sequences, nulls = self._sequences(batch)
            filtered = batch.num_rows - len(sequences) - len(nulls)
            account.settle(unit, batch, out=len(sequences), filtered=filtered, rejects=nulls)
            yield from map(len, sequences)

    def _sequences(self, batch: RowBatch) -> tuple[list[Ids], Sequence[Reject]]:
        if not batch.num_rows:
            return [], []
        if missing := list(lacking(self._job, batch, ["tokens"])):
            return [], missing
        tokens, rejects = usable_tokens(batch.rows, "tokens")
        ids = pc.index_in(pc.list_flatten(tokens), value_set=self._terms)
        known = ids.is_valid().to_numpy(zero_copy_only=False)
        owners = pc.list_parent_indices(tokens).to_numpy()[known]
        parts = np.split(ids.drop_null().to_numpy(), np.flatnonzero(np.diff(owners)) + 1)
        return [each for each in parts if len(each) > 1], rejects


def _read_mapping(job: Job) -> pa.Table:
    """The mapping in the order of its ids."""
    dataset = job.plan.inputs["mapping"]
    table = read_table(dataset)
    if missing := sorted(_NEEDED.keys() - set(table.column_names)):
        raise RunError(
            f"{dataset.path}: expected the columns {', '.join(_NEEDED)}, missing {', '.join(missing)}"
        )
    if not table.num_rows:
        raise RunError(f"{dataset.path}: the mapping has no term, so there is nothing to train")
    kept = {name: kind for name, kind in _KEPT.items() if name in table.column_names}
    with run_errors_at(dataset.path):
        table = table.select(list(kept)).cast(pa.schema(kept)).sort_by("term_id")
    _check_mapping(table, dataset.path)
    return table


def _check_mapping(table: pa.Table, path: str) -> None:
    """Raise RunError unless ids count up, each has a term of its own, and each term occurs."""
    if table["term_id"].to_pylist() != list(range(table.num_rows)):
        raise RunError(f"{path}: expected term_id to count from 0 to {table.num_rows - 1} without gaps")
    if table["term"].null_count or len(pc.unique(table["term"])) < table.num_rows:
        raise RunError(f"{path}: expected each term once, found a null or a term with two ids")
    if table["count"].null_count or pc.min(table["count"]).as_py() < 1:
        raise RunError(f"{path}: expected a count of at least 1 for each term, found a null or a lower one")
