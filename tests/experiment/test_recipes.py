"""The main job on a small real corpus: a map comes out, and only what has to run runs."""

import gzip
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from treadle.errors import StepsFailedError
from treadle.execution.results import Results
from treadle.experiment import run, topic_steps
from treadle.experiment.manifest_step import manifest_step
from treadle.experiment.recipes import MANIFESTS, STATE_OF_THE_UNION, TopicMap, topic_map
from treadle.experiment.tables import column, load
from treadle.integrations.report import render_report
from treadle.integrations.report.collect import collect
from treadle.kernel import Cached, Done


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sixth address, its first thousand words or so."""
    path = tmp_path_factory.mktemp("corpus") / "addresses.jsonl.gz"
    with gzip.open(STATE_OF_THE_UNION, "rt", encoding="utf-8") as lines, gzip.open(path, "wt") as short:
        for line in list(lines)[::6]:
            row = json.loads(line)
            short.write(json.dumps({**row, "text": row["text"][:6_000].rsplit(".", 1)[0] + "."}) + "\n")
    return path


@pytest.fixture(scope="module")
def recipe(corpus: Path) -> TopicMap:
    return topic_map(corpus, topics=4, passage_words=60, min_count=3, dimensions=16, epochs=1, map_points=100)


@pytest.fixture(scope="module")
def finished(recipe: TopicMap, tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    store = tmp_path_factory.mktemp("store")
    return run(*recipe.handles().values(), prefix=store, max_concurrent=2), store


def ran(recipe: TopicMap, results: Results) -> set[str]:
    return {
        part
        for part, handle in recipe.handles().items()
        if isinstance(results.outcomes[handle.id].outcome, Done)
    }


def test_every_step_ran_once_and_every_topic_has_a_name_from_the_model(
    recipe: TopicMap, finished: tuple[Results, Path]
) -> None:
    results, _ = finished
    assert ran(recipe, results) == set(recipe.handles())
    answers = load(results[recipe.names.id], "answers").to_pylist()
    assert sorted(row["id"] for row in answers) == ["0", "1", "2", "3"]
    assert all(row["answer"].strip() and row["new_tokens"] > 0 for row in answers)


def test_the_numbers_of_the_steps_agree(recipe: TopicMap, finished: tuple[Results, Path]) -> None:
    """Rows are neither lost nor invented between the steps, whatever each of them counts."""
    results, _ = finished
    tables = {part: results[handle.id] for part, handle in recipe.handles().items()}
    passages = load(tables["passages"], "rows")
    assigned = load(tables["clusters"], "assignments")
    assert set(assigned["id"].to_pylist()) <= set(passages["id"].to_pylist())
    over_time = load(tables["topics"], "over_time")
    assert sum(column(over_time, "passages")) == len(assigned)
    growth = load(tables["growth"], "growth").to_pylist()
    tokens = sum(len(row) for row in column(load(tables["tokens"], "rows"), "tokens"))
    assert growth[-1]["tokens"] == tokens == sum(column(load(tables["term_sums"], "sums"), "count"))
    assert growth[-1]["types"] == len(set(column(load(tables["term_sums"], "sums"), "term")))


def test_a_second_run_is_all_cached(recipe: TopicMap, finished: tuple[Results, Path]) -> None:
    again = run(*recipe.handles().values(), prefix=finished[1])
    assert all(isinstance(each.outcome, Cached) for each in again.outcomes.values())


def test_the_page_shows_the_topics_and_where_each_number_comes_from(
    recipe: TopicMap, finished: tuple[Results, Path]
) -> None:
    results, store = finished
    steps: Mapping[str, str] = {part: handle.id for part, handle in recipe.handles().items()}
    page = render_report(collect(steps, results, corpus_note="A small corpus."))
    assert all(f"{store}/{part}/" in page for part in steps)
    assert "A small corpus." in page


def test_a_deleted_output_reruns_its_step_and_what_depends_on_it(
    recipe: TopicMap, finished: tuple[Results, Path], tmp_path: Path
) -> None:
    """A copy of the store: the other tests go on with the finished one."""
    store = tmp_path / "store"
    shutil.copytree(finished[1], store)
    shutil.rmtree(store / "clusters")
    again = run(*recipe.handles().values(), prefix=store)
    assert ran(recipe, again) == {"clusters", "topics", "projection", "names"}


def test_editing_a_manifest_makes_new_steps_and_moving_it_does_not(tmp_path: Path) -> None:

    moved = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    original = manifest_step("vocabulary", MANIFESTS / "vocabulary.yaml", tokens="a", min_count=5)
    assert manifest_step("vocabulary", moved / "vocabulary.yaml", tokens="a", min_count=5).id == original.id
    common = moved / "common.yaml"
    common.write_text(common.read_text().replace("seed: 7", "seed: 8"))
    assert manifest_step("vocabulary", moved / "vocabulary.yaml", tokens="a", min_count=5).id != original.id


def test_a_corpus_without_documents_is_an_error_with_its_path(tmp_path: Path) -> None:
    corpus = tmp_path / "empty.jsonl"
    corpus.touch()
    documents = topic_steps.documents(topic_steps.digest_of(corpus), str(corpus))
    with pytest.raises(StepsFailedError, match=r"empty\.jsonl: expected one document a line, got none"):
        run(documents, prefix=tmp_path / "store")
