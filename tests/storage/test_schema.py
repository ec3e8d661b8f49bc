from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from treadle.storage.formats.view import as_table
from treadle.storage.schema import as_text, conform, widen


def schema_of(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(list(fields))


def test_values_become_text_as_json_spells_them() -> None:
    rows = pa.table(
        {
            "bool": [True, False, None],
            "whole": [1, -(2**63), None],
            "fraction": [1.0, 0.1, None],
            "large": [1e16, 5e-324, None],
            "list": [[1, None], [2], None],
            "object": [{"a": "é", "b": 1}, {"a": None, "b": 2}, None],
            "text": ["x", '"', None],
            "nothing": pa.nulls(3),
            "time": [datetime.datetime(2026, 1, 31, 12), None, None],
        }
    )
    texts = as_text(rows, rows.schema.names)
    assert set(texts.schema.types) == {pa.string()}
    assert texts.to_pydict() == {
        "bool": ["true", "false", None],
        "whole": ["1", "-9223372036854775808", None],
        "fraction": ["1.0", "0.1", None],
        "large": ["1e+16", "5e-324", None],
        "list": ["[1, null]", "[2]", None],
        "object": ['{"a": "é", "b": 1}', '{"a": null, "b": 2}', None],
        "text": ["x", '"', None],
        "nothing": [None] * 3,
        "time": ["2026-01-31 12:00:00", None, None],
    }


def test_only_the_named_columns_become_text_in_their_place() -> None:
    rows = pa.table({"a": [1], "b": [2], "c": [3]})
    assert as_text(rows, ["b", "other"]).to_pylist() == [{"a": 1, "b": "2", "c": 3}]
    assert as_text(rows.slice(0, 0), ["b"]).schema.field("b").type == pa.string()


def test_a_schema_widens_by_new_columns_types_for_nulls_and_fractions() -> None:
    known = schema_of(("a", pa.null()), ("b", pa.int64()))
    found = schema_of(("b", pa.float64()), ("c", pa.bool_()), ("a", pa.string()))
    wide = widen(known, found)
    assert wide == schema_of(("a", pa.string()), ("b", pa.float64()), ("c", pa.bool_()))
    rows = conform(pa.table({"b": [1], "a": pa.nulls(1)}), wide)
    assert rows.schema == wide
    assert rows.to_pylist() == [{"a": None, "b": 1.0, "c": None}]


def test_text_and_numbers_do_not_widen() -> None:
    with pytest.raises(pa.ArrowException, match="Field a "):
        widen(pa.schema([("a", pa.string())]), pa.schema([("a", pa.int64())]))


def test_a_whole_number_without_an_exact_fraction_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        conform(pa.table({"a": [2**53 + 1]}), pa.schema([("a", pa.float64())]))


def test_rows_without_columns_stay_as_many() -> None:
    rows = as_table([{}, {}])
    assert conform(rows, pa.schema([("a", pa.int64())])).to_pylist() == [{"a": None}, {"a": None}]
