"""A corpus becomes a labelled topic map: the one file that knows all three scales.

    documents -> passages -> tokens -> vocabulary -> word_vectors -> passage_vectors -> clusters
                               |                                                           |
                               +-> term_sums -> growth         projection, topics -> names +

`topic_map` says it in handles. Most steps are manifest runs, whose manifests lie in `manifests/`; the
rest are the functions of `topic_steps`. In the last, `names`, a language model reads the terms of each topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from treadle.artifacts import Artifact
from treadle.execution import Handle
from treadle.experiment import topic_steps
from treadle.experiment.manifest_step import manifest_step

STATE_OF_THE_UNION = Path(__file__).with_name("corpora") / "state_of_the_union.jsonl.gz"
MANIFESTS = Path(__file__).with_name("manifests")


@dataclass(frozen=True)
class TopicMap:
    """The handles of the recipe, in the order of the walk."""

    documents: Handle[Artifact]
    passages: Handle[Artifact]
    tokens: Handle[Artifact]
    vocabulary: Handle[Artifact]
    term_sums: Handle[Artifact]
    growth: Handle[Artifact]
    word_vectors: Handle[Artifact]
    passage_vectors: Handle[Artifact]
    clusters: Handle[Artifact]
    topics: Handle[Artifact]
    projection: Handle[Artifact]
    names: Handle[Artifact]

    def handles(self) -> Mapping[str, Handle[Artifact]]:
        """Part -> handle."""
        return vars(self)


def topic_map(
    corpus: Path = STATE_OF_THE_UNION,
    *,
    topics: int = 24,
    passage_words: int = 100,
    min_count: int = 5,
    dimensions: int = 96,
    epochs: int = 5,
    map_points: int = 4_000,
) -> TopicMap:
    """The experiment, in handles; nothing runs yet.

    Args:
        corpus: a JSON-lines file with the columns id, year, president and text.
        topics: how many clusters the passages fall into.
        passage_words: about how long a passage is, in words.
        min_count: terms seen fewer times get no vector.
        dimensions: of a word's vector.
        epochs: how often the words are learned from.
        map_points: how many passages the map shows.

    Raises:
        OSError: the corpus cannot be read.
        UsageError: an argument that a manifest refuses, or something that a run needs is not installed.
    """
    texts = topic_steps.documents(topic_steps.digest_of(corpus), str(corpus))
    parts = topic_steps.passages(texts, passage_words)
    tokens = _run("tokens", passages=parts)
    vocabulary = _run("vocabulary", tokens=tokens, min_count=min_count)
    term_sums = _run("term_sums", tokens=tokens)
    word_vectors = _run(
        "word_vectors", tokens=tokens, vocabulary=vocabulary, dimensions=dimensions, epochs=epochs
    )
    passage_vectors = _run("passage_vectors", tokens=tokens, word_vectors=word_vectors)
    clusters = _run("clusters", passage_vectors=passage_vectors, topics=topics)
    described = topic_steps.describe_topics(parts, tokens, clusters)
    return TopicMap(
        documents=texts,
        passages=parts,
        tokens=tokens,
        vocabulary=vocabulary,
        term_sums=term_sums,
        growth=topic_steps.growth(term_sums),
        word_vectors=word_vectors,
        passage_vectors=passage_vectors,
        clusters=clusters,
        topics=described,
        projection=topic_steps.projection(passage_vectors, clusters, map_points),
        names=_run("names", topics=described),
    )


def _run(name: str, **params: object) -> Handle[Artifact]:
    return manifest_step(name, MANIFESTS / f"{name}.yaml", **params)
