"""Paged attention against the formula, written out without pages."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.engine.resources.attention import Attention, AttentionPlan
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan, KvRow
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.step import ResourceStep, Segment, StepContext, SubmoduleStep
from treadle.errors import EngineError

HEADS, GROUP, WIDTH, PAGE = 2, 3, 4, 4


def formula(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, start: int) -> torch.Tensor:
    """Token i of a row (span, heads, width) looks at positions 0 .. start + i of (length, heads, width)."""
    out = torch.empty_like(queries)
    for i in range(len(queries)):
        for head in range(queries.shape[1]):
            seen = slice(0, start + i + 1)
            scores = keys[seen, head // GROUP] @ queries[i, head] / math.sqrt(WIDTH)
            out[i, head] = torch.softmax(scores, 0) @ values[seen, head // GROUP]
    return out


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), min_size=1, max_size=5), st.integers(0, 99))
def test_any_mix_of_rows_equals_the_formula(rows: list[tuple[int, int]], seed: int) -> None:
    """Decoding rows of unlike lengths, whole prompts and later chunks share one step."""
    chance = torch.Generator().manual_seed(seed)
    cache = PagedKvCache(KvShape(1, HEADS, WIDTH), pages=40, page_size=PAGE)
    for half in cache.layer(0):
        half.fill_(math.nan)  # what other requests left behind must not be seen
    attention, expected, queries = Attention(HEADS, WIDTH), [], []
    segments = tuple(Segment(str(at), span) for at, (_, span) in enumerate(rows))
    past, whole = [Segment(str(at), start) for at, (start, _) in enumerate(rows)], ResourceStep(segments)
    for at in range(len(rows)):
        cache.ingest(str(at), None)
    ctx = StepContext()
    cache.admit(ResourceStep(tuple(past)), ctx)
    cache.commit(ResourceStep(tuple(past)), ctx)
    cache.admit(whole, ctx)
    plan = cache.plan(whole, ctx)
    assert isinstance(plan, KvPlan)
    for row in plan.rows:
        length = row.start + row.span
        keys, values = torch.rand(2, length, HEADS, WIDTH, generator=chance)
        slots = torch.tensor([row.pages[at // PAGE] * PAGE + at % PAGE for at in range(length)])
        cache.write(0, keys, values, KvPlan(slots, (row,), PAGE))
        queries.append(torch.rand(row.span, HEADS * GROUP, WIDTH, generator=chance))
        expected.append(formula(queries[-1], keys, values, row.start))
    step = SubmoduleStep({"attention": ResourceStep()}, segments, StepContext({"kv": plan}))
    planned = attention.plan(step.resources["attention"], step.ctx)
    got = planned.attend(torch.cat(queries), *cache.layer(0))
    torch.testing.assert_close(got, torch.cat(expected), atol=1e-5, rtol=1e-5)


def test_decoding_rows_are_one_call() -> None:
    """A call for each of sixteen rows in each of thirty layers would cost more than the arithmetic."""
    rows = tuple(KvRow(start, 1, (0, 1)) for start in (4, 5, 6))
    ctx = StepContext({"kv": KvPlan(torch.zeros(3, dtype=torch.int64), rows, PAGE)})
    plan = Attention(HEADS, WIDTH).plan(ResourceStep(()), ctx)
    assert isinstance(plan, AttentionPlan)
    assert [gather.rows for gather in plan.gathers] == [3]


def test_without_the_cache_plan_the_error_says_what_to_do() -> None:
    """A wrong key would otherwise surface as a missing attribute in the middle of a pass."""
    with pytest.raises(EngineError, match=r"'kv' should be a KvPlan.*depends_on"):
        Attention(HEADS, WIDTH).plan(ResourceStep(()), StepContext())
