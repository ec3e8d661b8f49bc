"""The steps of the topic map that are plain functions: from one table to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treadle.artifacts import Artifact
from treadle.domain.columns import vector_matrix
from treadle.domain.growth import growth_curve
from treadle.domain.projection import project
from treadle.domain.text import split_passages, strip_stage_directions
from treadle.domain.topics import class_terms, count_cluster_terms, representatives, topics_over_time
from treadle.errors import StepError
from treadle.execution import Runtime, StepContext, step
from treadle.experiment.tables import column, load, load_shards, look_up, save
from treadle.storage import Dataset, read_table

DOCUMENT_SHARDS = 8
SEED = 7
Labels: TypeAlias = NDArray[np.int32]


def digest_of(corpus: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(corpus.read_bytes()).hexdigest()


@step
def documents(digest: str, corpus: Runtime[str], ctx: StepContext) -> Artifact:
    """The corpus, whose content is `digest`, cleaned and sorted by year, in shards of about equal length."""
    if digest_of(Path(corpus)) != digest:
        raise StepError(f"{corpus}: changed since the step was made; make the handle again")
    table = read_table(Dataset("jsonl", corpus, columns=("id", "year", "president", "text")))
    if not table.num_rows:
        raise StepError(f"{corpus}: expected one document a line, got none")
    save(ctx, "rows", _shards(_cleaned(table)))
    return Artifact(ctx.output_path)


def _cleaned(table: pa.Table) -> pa.Table:
    named = table.rename_columns(["id", "year", "speaker", "text"])
    ordered = named.sort_by([("year", "ascending"), ("id", "ascending")])
    texts = [strip_stage_directions(text) for text in column(ordered, "text")]
    return ordered.set_column(3, "text", pa.array(texts, pa.string()))


def _shards(table: pa.Table) -> Iterator[pa.Table]:
    ends = np.cumsum([len(text) for text in column(table, "text")])
    shard_of = ends * DOCUMENT_SHARDS // (ends[-1] + 1)
    return (table.filter(pa.array(shard_of == shard)) for shard in range(DOCUMENT_SHARDS))


@step
def passages(documents: Artifact, words: int, ctx: StepContext) -> Artifact:
    """Each document cut into passages of whole sentences, about `words` words long."""
    save(ctx, "rows", (_cut(shard, words) for shard in load_shards(documents, "rows")))
    return Artifact(ctx.output_path)


def _cut(shard: pa.Table, words: int) -> pa.Table:
    rows = [
        {"id": f"{row['id']}#{at:03}", "year": row["year"], "speaker": row["speaker"], "text": text}
        for row in shard.to_pylist()
        for at, text in enumerate(split_passages(row["text"], words=words), 1)
    ]
    return pa.Table.from_pylist(rows, schema=shard.schema)


@step
def growth(term_sums: Artifact, ctx: StepContext) -> Artifact:
    """Running words, different words and words seen once, after each year."""
    curve = growth_curve(load(term_sums, "sums"))
    save(ctx, "growth", [curve.rename_columns(["year", *curve.column_names[1:]])])
    return Artifact(ctx.output_path)


@step(name="topics")
def describe_topics(passages: Artifact, tokens: Artifact, clusters: Artifact, ctx: StepContext) -> Artifact:
    """Each cluster's terms, its passages nearest to the centroid, and its passages by decade."""
    assigned = load(clusters, "assignments").sort_by("id")
    labels = assigned["cluster"].to_numpy()
    save(ctx, "topics", [_terms(assigned, labels, look_up(tokens, "rows", "tokens"))])
    save(ctx, "examples", [_examples(assigned, labels, look_up(passages, "rows", "text"))])
    save(ctx, "over_time", [topics_over_time(labels, assigned["year"].to_numpy())])
    return Artifact(ctx.output_path)


def _terms(assigned: pa.Table, labels: Labels, tokens_of: Mapping[str, list[str]]) -> pa.Table:
    counts = count_cluster_terms(labels, (tokens_of[each] for each in column(assigned, "id")))
    rows = [
        {"id": str(topic), "terms": ", ".join(term.term for term in found)}
        for topic, found in class_terms(counts).items()
    ]
    return pa.Table.from_pylist(rows)


def _examples(assigned: pa.Table, labels: Labels, text_of: Mapping[str, str]) -> pa.Table:
    ids = column(assigned, "id")
    sources = [each.rpartition("#")[0] for each in ids]  # the documents, as `_cut` has named their passages
    nearest = representatives(labels, assigned["distance"].to_numpy(), sources)
    rows = [
        {"topic": topic, "rank": rank, "passage": ids[row], "text": text_of[ids[row]]}
        for topic, found in nearest.items()
        for rank, row in enumerate(found, 1)
    ]
    return pa.Table.from_pylist(rows)


@step
def projection(passage_vectors: Artifact, clusters: Artifact, points: int, ctx: StepContext) -> Artifact:
    """Places in the plane for a sample of passages, the same sample every time."""
    vectors = load(passage_vectors, "rows").sort_by("id")
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(vectors))[:points])
    sample = vectors.take(chosen)
    label_of = look_up(clusters, "assignments", "cluster")
    labels = np.array([label_of[each] for each in column(sample, "id")], np.int32)
    places = project(vector_matrix(sample["vector"]), seed=SEED)
    shown = {name: sample[name] for name in ("id", "year", "speaker")}
    save(ctx, "points", [pa.table({**shown, "x": places[:, 0], "y": places[:, 1], "topic": labels})])
    return Artifact(ctx.output_path)
