from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.domain.columns import token_lists, vector_column, vector_matrix
from treadle.domain.result import Counters, ProcessResult, Reject
from treadle.domain.transforms import EmbedTransform, TokenizeTransform
from treadle.domain.word_weights import residual_idf
from treadle.errors import ArgumentError


def batch_of(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


counters = st.builds(
    Counters,
    *[st.integers(0, 9)] * 4,
    st.dictionaries(st.sampled_from("pq"), st.integers(0, 9)),
)


@given(counters, counters, counters)
def test_counters_add_up_in_any_grouping(a: Counters, b: Counters, c: Counters) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a + Counters()).extra == a.extra
    assert (a + b).rows_in == a.rows_in + b.rows_in
    if a.balanced and b.balanced:
        assert (a + b).balanced


def rows_of(result: ProcessResult) -> pa.RecordBatch:
    rows = result.outputs["rows"]
    assert isinstance(rows, pa.RecordBatch)
    return rows


def test_rows_are_kept_filtered_or_rejected_with_a_reason() -> None:
    rows = batch_of(
        id=["a", "b", "c", "d"], text=["War and peace", None, "?!", "Gold"], year=[1790, 1790, 1791, None]
    )
    result = TokenizeTransform(keep=["id"], group_by="year")(rows)
    assert rows_of(result).to_pydict() == {"id": ["a"], "tokens": [["war", "and", "peace"]]}
    assert result.rejects == (Reject(1, "text is null"), Reject(3, "year is null"))
    assert result.counters == Counters(rows_in=4, rows_out=1, filtered=1, rejected=2)
    assert result.state is not None
    assert result.state.to_table()["group"].to_pylist() == [1790] * 3


def test_a_column_that_is_no_text_rejects_its_rows() -> None:
    result = TokenizeTransform(text_column="n")(batch_of(n=[1, None]))
    assert [each.reason for each in result.rejects] == ["n is int, expected a string", "n is null"]
    assert rows_of(result).schema.field("tokens").type == pa.list_(pa.string())
    assert result.counters.balanced


@given(st.lists(st.none() | st.sampled_from(["", "one", "one two", "1 2 3"]), max_size=9), st.integers(0, 3))
def test_every_row_is_accounted_for(texts: list[str | None], least: int) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["text"])
    result = TokenizeTransform(min_tokens=least)(rows)
    assert result.counters.balanced
    assert result.counters.rejected == texts.count(None)
    lengths = pc.list_value_length(rows_of(result)["tokens"]).to_pylist()
    assert lengths == [len(text.split()) for text in texts if text is not None and len(text.split()) >= least]


def test_wrong_options_and_columns_are_named() -> None:
    with pytest.raises(ArgumentError, match="'NFX'"):
        TokenizeTransform(normalize="NFX")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="without 'tokens'"):
        TokenizeTransform(keep=["tokens"])
    with pytest.raises(ArgumentError, match="expected a column 'id', found the columns text"):
        TokenizeTransform(keep=["id"])(batch_of(text=["a"]))
    with pytest.raises(ArgumentError, match="above 0"):
        EmbedTransform(smoothing=0)
    with pytest.raises(ArgumentError, match="needs the side input 'vectors', got"):
        EmbedTransform().bind({})
    with pytest.raises(ArgumentError, match="expected a column 'count'"):
        EmbedTransform().bind({"vectors": pa.table({"term": ["a"]})})


TERMS = ["the", "war", "peace", "gold", "silver", "bank"]
COUNTS = [900, 60, 40, 30, 20, 10]
DOCUMENTS = [100, 30, 25, 10, 8, 6]


def vectors_table(*, documents: bool = False) -> pa.Table:
    matrix = np.random.default_rng(3).standard_normal((len(TERMS), 4)).astype(np.float32)
    table = pa.table({"term": TERMS, "count": COUNTS, "vector": vector_column(matrix)})
    return table.append_column("documents", pa.array(DOCUMENTS)) if documents else table


def by_hand(tokens: list[str], table: pa.Table, options: EmbedTransform) -> Any:
    """The definition, word by word in float64."""
    matrix = vector_matrix(table["vector"]).astype(np.float64)
    weights, frequencies = [], []
    for at, (term, count) in enumerate(zip(TERMS, COUNTS, strict=True)):
        frequency = count / sum(COUNTS)
        weight = options.smoothing / (options.smoothing + frequency)
        if "documents" in table.column_names:
            expected = 1 - np.exp(-count / DOCUMENTS[0])
            weight *= max(0.0, np.log2(expected * DOCUMENTS[0] / DOCUMENTS[at]))
        weights.append(0.0 if options.drop_stopwords and term == "the" else weight)
        frequencies.append(frequency)
    mass = np.array(weights) * np.array(frequencies)
    matrix = matrix - (mass[:, None] * matrix).sum(axis=0) / mass.sum()
    _, _, directions = np.linalg.svd(np.sqrt(mass)[:, None] * matrix, full_matrices=False)
    for direction in directions[: options.components]:
        matrix = matrix - np.outer(matrix @ direction, direction)
    total = sum(
        weights[TERMS.index(token)] * matrix[TERMS.index(token)] for token in tokens if token in TERMS
    )
    return total / np.linalg.norm(total)


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize(
    "options", [EmbedTransform(), EmbedTransform(components=2, drop_stopwords=False, smoothing=0.1)]
)
def test_a_passage_vector_is_the_weighted_mean_by_definition(
    options: EmbedTransform, *, documents: bool
) -> None:
    table = vectors_table(documents=documents)
    lists = [["the", "war", "war", "peace"], ["gold", "unknown"], ["silver", "the", "bank", "gold", "war"]]
    result = options.bind({"vectors": table})(batch_of(tokens=lists))
    found = vector_matrix(rows_of(result)["vector"])
    assert found.dtype == np.float32
    for row, tokens in zip(found, lists, strict=True):
        assert row == pytest.approx(by_hand(tokens, table, options), abs=1e-5)


def test_rows_without_a_known_word_are_filtered_and_null_ones_rejected() -> None:
    bound = EmbedTransform(keep=["id"]).bind({"vectors": vectors_table()})
    tokens = pa.array([["zzz"], None, [], ["the"], ["zzz", "gold"]], pa.list_(pa.string()))
    result = bound(pa.RecordBatch.from_arrays([pa.array(range(5)), tokens], names=["id", "tokens"]))
    assert rows_of(result)["id"].to_pylist() == [4]
    assert rows_of(result).schema.field("vector").type == pa.list_(pa.float32(), 4)
    assert result.rejects == (Reject(1, "tokens is null"),)
    assert result.counters == Counters(rows_in=5, rows_out=1, filtered=3, rejected=1)


def test_a_batch_does_not_depend_on_its_neighbours_or_its_offset() -> None:
    """Batches are slices of larger ones: offsets must not shift the words of a row."""
    bound = EmbedTransform().bind({"vectors": vectors_table()})
    rows = batch_of(tokens=[["war"], ["gold", "bank"], [], ["peace", "silver"]])
    whole = vector_matrix(rows_of(bound(rows))["vector"])
    parts = [vector_matrix(rows_of(bound(rows.slice(at, 1)))["vector"]) for at in (0, 1, 3)]
    assert whole.tolist() == np.concatenate(parts).tolist()
    nulls = bound(batch_of(tokens=[None, None]))
    assert nulls.counters == Counters(rows_in=2, rejected=2)
    [wrong] = bound(batch_of(tokens=["war"])).rejects
    assert (wrong.reason, wrong.kind) == (
        "column 'tokens' is string, expected lists of strings",
        "wrong-type",
    )
    empty = bound(rows.slice(0, 0))
    assert rows_of(empty).num_rows == 0
    assert empty.counters == Counters()


def test_bursty_words_outweigh_evenly_spread_ones() -> None:
    """What keeps words of manner from making clusters: same count, fewer documents, more weight."""
    spread, bursty, everywhere = residual_idf(np.array([100.0, 100, 5000]), np.array([95.0, 20, 1000]))
    assert everywhere == pytest.approx(0, abs=0.01)
    assert spread < 0.01 < 2 < bursty


def test_vectors_survive_the_column_and_bad_ones_are_refused() -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2)
    column = vector_column(matrix)
    assert vector_matrix(column).tolist() == matrix.tolist()
    assert vector_matrix(pa.chunked_array([column[:1], column[1:]])).tolist() == matrix.tolist()
    assert vector_matrix(column.slice(1, 1)).tolist() == [[2.0, 3.0]]
    assert vector_matrix(pa.array([[1, 2], [3, 4]])).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    for bad in ([[1.0], [1.0, 2.0]], [[1.0], None]):
        with pytest.raises(ArgumentError, match="one length without nulls"):
            vector_matrix(pa.array(bad))


def test_groups_are_single_values() -> None:
    with pytest.raises(ArgumentError, match="expected integers or strings to group by"):
        TokenizeTransform(group_by="g")(batch_of(text=["a"], g=[[1]]))


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("count", [None, 1], "'count' of the word vectors must hold integers"),
        ("documents", [1, None], "'documents' of the word vectors must hold integers"),
        ("vector", ["x", "y"], "must be lists of numbers"),
        ("vector", [[1.0, None], [1.0, 2.0]], "must hold finite numbers"),
        ("vector", [[1.0, float("nan")], [1.0, 2.0]], "must hold finite numbers"),
    ],
)
def test_word_vectors_that_cannot_be_used_are_refused(column: str, values: list[Any], said: str) -> None:
    """One of them makes every passage vector NaN, and every row would be filtered without a word."""
    words = {"term": ["a", "b"], "count": [1, 1], "documents": [1, 1], "vector": [[1.0, 2.0], [2.0, 1.0]]}
    with pytest.raises(ArgumentError, match=said):
        EmbedTransform().bind({"vectors": pa.table({**words, column: values})})


def test_smoothing_is_finite() -> None:
    with pytest.raises(ArgumentError, match="smoothing must be above 0 and finite"):
        EmbedTransform(smoothing=float("inf"))


@pytest.mark.parametrize(
    ("values", "found"), [(pa.array([[1]]), "list<item: int64>"), (pa.array(["a"]), "string")]
)
def test_tokens_are_lists_of_text(values: Any, found: str) -> None:
    """A number in a column of texts is a bad row, so a column of numbers must not pass as one of texts."""
    with pytest.raises(ArgumentError, match=f"'tokens' is {found}, expected lists of strings"):
        token_lists(pa.RecordBatch.from_arrays([values], ["tokens"]), "tokens")


@pytest.mark.parametrize("values", [pa.nulls(2), pa.array([[], None]), pa.array([["a"], None])])
def test_tokens_that_are_not_there_are_null_or_empty(values: Any) -> None:
    tokens = token_lists(pa.RecordBatch.from_arrays([values], ["tokens"]), "tokens")
    assert tokens.type == pa.list_(pa.string())
    assert tokens.to_pylist() == values.to_pylist()
