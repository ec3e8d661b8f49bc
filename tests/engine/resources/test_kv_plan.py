"""Slots, tables and lengths against the definition, written out."""

from array import array

import torch
from hypothesis import given
from hypothesis import strategies as st

from treadle.engine.resources.kv_plan import KvPlan, KvRow


@st.composite
def kv_rows(draw: st.DrawFn) -> tuple[list[KvRow], int]:
    """Rows over pages of one pool, some with pages that were given back; and the size of a page."""
    size, rows = draw(st.integers(1, 5)), []
    pages = iter(draw(st.permutations(range(200))))
    for _ in range(draw(st.integers(0, 6))):
        start, span = draw(st.integers(0, 20)), draw(st.integers(0, 9))
        gone = draw(st.integers(0, start // size))
        count = -(-(start + span) // size) - gone
        rows.append(KvRow(start, span, array("i", (next(pages) for _ in range(count))), gone))
    return rows, size


@given(kv_rows())
def test_a_token_goes_to_its_place_in_the_page_of_its_position(case: tuple[list[KvRow], int]) -> None:
    """Whatever was stored before and given back, row after row."""
    rows, size = case
    expected = [
        row.pages[at // size - row.gone] * size + at % size
        for row in rows
        for at in range(row.start, row.start + row.span)
    ]
    slots = KvPlan.of(rows, size).slots
    assert slots.dtype is torch.int64
    assert slots.tolist() == expected


@given(kv_rows())
def test_the_table_has_the_pages_of_each_row_and_only_those(case: tuple[list[KvRow], int]) -> None:
    """A shorter row ends in its own first page: what stands in the pages of others is never read."""
    rows, size = case
    plan = KvPlan.of(rows, size)
    longest = max((len(row.pages) for row in rows), default=0)
    padded = [
        [*row.pages, *([row.pages[0] if row.pages else 0] * (longest - len(row.pages)))] for row in rows
    ]
    assert (plan.table.dtype, plan.table.shape) == (torch.int32, (len(rows), longest))
    assert plan.table.tolist() == padded
    assert plan.lengths.dtype is torch.int32
    assert plan.lengths.tolist() == [row.start + row.span for row in rows]
