from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.storage.type_text import parse_type

simple = st.sampled_from(
    [
        pa.null(),
        pa.bool_(),
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us"),
    ]
)
names = st.text(st.sampled_from("abé_ -.0"), min_size=1).filter(lambda name: name == name.strip())
types = st.recursive(
    simple,
    lambda inner: (
        st.builds(pa.list_, inner)
        | st.builds(pa.large_list, inner)
        | st.dictionaries(names, inner, max_size=3).map(lambda fields: pa.struct(list(fields.items())))
    ),
    max_leaves=6,
)


@given(types)
def test_a_type_comes_back_from_its_text(kind: pa.DataType) -> None:
    assert parse_type(str(kind)) == kind


UNKNOWN = """
?
int65
list<
list<int64>
list<a: int64, b: int64>
struct<a>
struct<a: >
struct<a, b: int64>
map<string, int64>
dictionary<values=string, indices=int32, ordered=0>
"""


@pytest.mark.parametrize("text", UNKNOWN.split("\n"))
def test_what_is_not_understood_is_none(text: str) -> None:
    assert parse_type(text) is None
