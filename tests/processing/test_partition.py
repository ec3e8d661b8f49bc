"""Run type `partition`: options placed in the manifest, side inputs, one file a unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from treadle.domain.columns import vector_column
from treadle.domain.result import Counters, ProcessResult, Transform
from treadle.domain.transforms import TokenizeTransform
from treadle.errors import ArgumentError, ManifestError, RunError
from treadle.ext import register_transform
from treadle.processing import streams


def body(
    transform: str = "{name: tokenize}", inputs: str = "", outputs: str = "", batch_rows: int = 100
) -> str:
    return f"""
        run: {{type: partition}}
        inputs:
          documents: {{backend: jsonl, path: "${{params.in}}/*.jsonl"}}
          {inputs}
        transform: {transform}
        outputs:
          rows: {{backend: parquet, path: rows}}
          {outputs}
        parallelism: {{batch_rows: {batch_rows}, queue_depth: 1}}
    """


VECTORS_AND_MORE = "vectors: {backend: parquet, path: x}\n          more: {backend: jsonl, path: y}"
REGISTRY = "registry: {backend: parquet, path: registry}"


def problems_of(workshop: Any, manifest: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        workshop.run(manifest)
    assert all(each.line for each in caught.value.problems)
    return [str(each).split(": ", 1)[1] for each in caught.value.problems]


def test_one_file_a_unit_of_rows_and_of_terms(workshop: Any) -> None:
    """Later steps read unit by unit; the registry of a unit is that of its file."""
    workshop.rows("a", [{"id": 1, "text": "to be or not to be"}, {"id": 2, "text": "Be."}])
    workshop.rows("b", [{"id": 3, "text": "other"}])
    workshop.run(body("{name: tokenize, keep: [id]}", outputs=REGISTRY))
    assert workshop.read("rows") == [
        {"id": 1, "tokens": ["to", "be", "or", "not", "to", "be"]},
        {"id": 2, "tokens": ["be"]},
        {"id": 3, "tokens": ["other"]},
    ]
    first = pq.read_table(workshop.out / "registry/part-00000.parquet").to_pylist()
    assert first == [
        {"term": "be", "count": 3, "documents": 2},
        {"term": "not", "count": 1, "documents": 1},
        {"term": "or", "count": 1, "documents": 1},
        {"term": "to", "count": 2, "documents": 1},
    ]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_the_size_of_batches_does_not_show(workshop: Any, batch_rows: int) -> None:
    """It is a matter of memory, not of results."""
    workshop.rows("a", [{"text": f"word{number % 3} again"} for number in range(5)])
    workshop.run(body(outputs=REGISTRY, batch_rows=batch_rows))
    assert workshop.read("registry")[0] == {"term": "again", "count": 5, "documents": 5}
    assert len(workshop.read("rows")) == 5


def test_each_wrong_option_is_placed(workshop: Any) -> None:
    """All at once, each with its line, what is expected and the nearest name."""
    found = problems_of(
        workshop, body("{name: tokenize, lowercse: true, min_tokens: '2', keep: [id, 7], normalize: NFX}")
    )
    assert any(
        each.startswith("transform.lowercse: expected one of text_column, keep, lowercase")
        and each.endswith("found 'lowercse'; did you mean 'lowercase'?")
        for each in found
    )
    assert "transform.min_tokens: expected a valid integer, found '2'" in found
    assert "transform.keep[1]: expected a valid string, found 7" in found
    assert any(each.startswith("transform.normalize: expected 'NFC'") for each in found)
    assert len(found) == 4


def test_settings_that_do_not_go_together_are_placed(workshop: Any) -> None:
    """What the dataclass itself refuses."""
    (found,) = problems_of(workshop, body("{name: tokenize, min_tokens: -1}"))
    assert found == (
        "transform: expected valid settings, found an error: min_tokens must be at least 0, got -1"
    )


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            body("{name: tokenise}"),
            "transform.name: expected one of embed, .*tokenize.*'tokenise'; did you mean 'tokenize'",
        ),
        (
            body().replace("transform:", "mapping: {} #"),
            "transform: expected the section transform, which partition needs",
        ),
        (
            body(outputs="registri: {backend: parquet, path: r}"),
            "outputs.registri: expected only registry, rows .* did you mean 'registry'",
        ),
        (
            body().replace("rows: {backend: parquet, path: rows}", REGISTRY),
            "outputs.rows: expected a dataset, which partition needs, found nothing",
        ),
        (
            body(inputs="more: {backend: jsonl, path: x}"),
            "inputs: expected one input, found documents, more",
        ),
        (
            body("{name: embed}"),
            "inputs.vectors: expected a dataset, which partition needs, found nothing",
        ),
        (
            body("{name: embed}", inputs=VECTORS_AND_MORE),
            "inputs: expected one input beside vectors, found documents, more",
        ),
    ],
)
def test_what_is_missing_or_unknown_is_placed(workshop: Any, manifest: str, expected: str) -> None:
    found = problems_of(workshop, manifest)
    assert any(re.match(expected, each) for each in found), found


def test_nothing_matches_the_path(workshop: Any) -> None:
    with pytest.raises(ArgumentError, match=r"no jsonl file at .*\*\.jsonl"):
        workshop.run(body())


def test_a_missing_column_is_told_with_the_file(workshop: Any) -> None:
    workshop.rows("a", [{"body": "x"}])
    with pytest.raises(RunError, match=r"a\.jsonl, lines 1 to 1: expected a column 'text', found"):
        workshop.run(body())


def test_side_inputs_reach_the_transform(workshop: Any) -> None:
    """Vectors are read whole, beside the rows that stream."""
    vectors = vector_column(np.array([[1, 0], [0, 1], [1, 1]], np.float32))
    table = pa.table({"term": ["sea", "field", "the"], "count": [5, 5, 50], "vector": vectors})
    (workshop.root / "in").mkdir()
    pq.write_table(table, workshop.root / "in" / "vectors.parquet")
    workshop.rows("a", [{"tokens": ["sea"]}, {"tokens": ["unheard"]}, {"tokens": ["field", "field"]}])
    side = 'vectors: {backend: parquet, path: "${params.in}/vectors.parquet"}'
    outcome = workshop.run(body("{name: embed, components: 0}", inputs=side))
    assert outcome.counters == Counters(rows_in=3, rows_out=2, filtered=1)
    sea, field = (each["vector"] for each in workshop.read("rows"))
    assert np.dot(sea, field) < 0


@dataclass(frozen=True)
class Shouting:
    """A plugin's transform: it keeps no registry."""

    mark: str
    side_inputs: ClassVar[tuple[str, ...]] = ()

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        return self._shout

    def _shout(self, batch: pa.RecordBatch) -> ProcessResult:
        loud = pa.array([f"{text}{self.mark}" for text in batch["text"].to_pylist()])
        rows = pa.RecordBatch.from_arrays([loud], names=["text"])
        name = "rows" if self.mark != "?" else "others"
        return ProcessResult(
            {name: rows}, (), Counters(batch.num_rows, batch.num_rows, extra={"marks": len(loud)})
        )


@pytest.fixture
def shout() -> None:
    register_transform("shout", Shouting)


@pytest.mark.usefixtures("shout")
def test_a_transform_from_outside(workshop: Any) -> None:
    workshop.rows("a", [{"text": "hello"}, {"text": "there"}])
    outcome = workshop.run(body("{name: shout, mark: '!'}"))
    assert workshop.read("rows") == [{"text": "hello!"}, {"text": "there!"}]
    assert outcome.counters.extra == {"marks": 2}


@pytest.mark.usefixtures("shout")
def test_a_required_option_that_is_missing(workshop: Any) -> None:
    assert problems_of(workshop, body("{name: shout}")) == ["transform.mark: expected a value, found nothing"]


@pytest.mark.usefixtures("shout")
def test_a_registry_nobody_keeps(workshop: Any) -> None:
    """An output that is declared and never written would be a silent surprise later."""
    workshop.rows("a", [{"text": "hello"}])
    with pytest.raises(RunError, match=r"keeps no registry: remove outputs\.registry"):
        workshop.run(body("{name: shout, mark: '!'}", outputs=REGISTRY))
    assert workshop.visible() == []


@pytest.mark.usefixtures("shout")
def test_a_crash_of_a_transform_says_on_which_rows(workshop: Any) -> None:
    """The author of a plugin has the rows to look at, and the error as it was raised."""
    workshop.rows("a", [{"text": "hello"}, {"body": "there"}])
    workshop.rows("b", [{"body": "there"}, {"body": "again"}])
    with pytest.raises(KeyError) as caught:
        workshop.run(body("{name: shout, mark: '!'}"))
    assert caught.value.__notes__ == [f"while working on {workshop.root}/in/b.jsonl, lines 1 to 2"]


@pytest.mark.usefixtures("shout")
def test_an_output_nobody_asked_for(workshop: Any) -> None:
    workshop.rows("a", [{"text": "hello"}])
    with pytest.raises(RunError, match=r"the transform gave the outputs \['others'\], expected 'rows' alone"):
        workshop.run(body("{name: shout, mark: '?'}"))


def test_registering_what_is_no_transform() -> None:
    with pytest.raises(ArgumentError, match="'nothing' must be a dataclass"):
        register_transform("nothing", int)  # type: ignore[type-var]
    with pytest.raises(ArgumentError, match="already registered"):
        register_transform("tokenize", Shouting)
    assert register_transform("tokenize", TokenizeTransform) is TokenizeTransform


def test_an_input_that_vanishes_meanwhile_is_named(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was there when the units were listed."""
    path = workshop.rows("a", [{"id": 1, "text": "one"}])
    listed = streams.units_of

    def then_removed(*arguments: Any) -> Any:
        units = listed(*arguments)
        path.unlink()
        return units

    monkeypatch.setattr("treadle.processing.patterns.partition.units_of", then_removed)
    with pytest.raises(RunError, match=r"unit 00000-a: .*a.jsonl cannot be read: .*No such file"):
        workshop.run(body())
    assert workshop.visible() == []
