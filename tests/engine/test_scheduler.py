"""Who runs when, on a toy node: order, promises and the token budget."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.engine.generation import Generation, Row
from treadle.engine.models.architectures import LanguageModel
from treadle.engine.models.llama_family import load_llama
from treadle.engine.node import Node, build_node
from treadle.engine.requests import GenerationRequest
from treadle.engine.scheduler import Scheduler
from treadle.engine.text import GrowingText
from treadle.engine.weights import open_gguf
from treadle.errors import ArgumentError


@pytest.fixture(scope="module")
def model(toy_path: Path) -> LanguageModel:
    return load_llama(open_gguf(toy_path))


def generation(rid: str, prompt: int, new: int) -> Generation:
    request = GenerationRequest(rid, "", new)
    return Generation(
        rid, request, [5] * prompt, prompt, prompt + new, frozenset(), GrowingText(lambda ids: "")
    )


def spans(rows: tuple[Row, ...]) -> list[tuple[str, int]]:
    return [(row.generation.rid, row.span) for row in rows]


def run(node: Node, scheduler: Scheduler, rows: tuple[Row, ...]) -> list[Generation]:
    """What a step does to the requests, without a model; returns those that ended."""
    step = node.declare(rows)
    assert node.runner.admit(step).ok
    node.runner.plan(step)
    node.runner.commit(step)
    ended = []
    for row in rows:
        samples = row.samples
        row.generation.computed += row.span
        if samples:
            row.generation.tokens.append(7)
            if len(row.generation.tokens) == row.generation.limit:
                scheduler.finish(row.generation)
                ended.append(row.generation)
    return ended


def scheduler_of(
    model: LanguageModel, *, pages: int, max_batch: int, token_budget: int
) -> tuple[Node, Scheduler]:
    node = build_node(model, pages=pages, page_size=4)
    return node, Scheduler(node, max_batch=max_batch, token_budget=token_budget)


def test_decoding_rows_come_before_prompts_and_share_the_budget(model: LanguageModel) -> None:
    """A long prompt must not stop those who already write; its chunks fill what is left."""
    node, scheduler = scheduler_of(model, pages=40, max_batch=3, token_budget=6)
    scheduler.add(generation("old", 2, 5))
    run(node, scheduler, scheduler.schedule())
    scheduler.add(generation("long", 9, 2))
    scheduler.add(generation("late", 3, 2))
    rows = scheduler.schedule()
    assert spans(rows) == [("old", 1), ("long", 5)]
    run(node, scheduler, rows)
    rows = scheduler.schedule()
    assert spans(rows) == [("old", 1), ("long", 4), ("late", 1)]
    run(node, scheduler, rows)
    assert spans(scheduler.schedule()) == [("old", 1), ("long", 1), ("late", 2)]


def test_only_what_can_be_carried_to_its_end_is_opened(model: LanguageModel) -> None:
    """Opening by what the prompt needs would stall two half-written texts on a full pool."""
    _, scheduler = scheduler_of(model, pages=4, max_batch=4, token_budget=64)
    scheduler.add(generation("a", 4, 9))
    scheduler.add(generation("b", 4, 9))
    assert spans(scheduler.schedule()) == [("a", 4)]


def test_nobody_overtakes_the_first_in_line(model: LanguageModel) -> None:
    """A stream of small requests would starve a large one for ever."""
    _, scheduler = scheduler_of(model, pages=4, max_batch=4, token_budget=64)
    first = generation("a", 4, 5)
    scheduler.add(first)
    scheduler.add(generation("large", 8, 9))
    scheduler.add(generation("small", 1, 1))
    assert spans(scheduler.schedule()) == [("a", 4)]
    scheduler.finish(first)
    assert spans(scheduler.schedule()) == [("large", 8)]


def test_max_batch_is_kept(model: LanguageModel) -> None:
    """It bounds the rows of a step, whatever the pool has."""
    _, scheduler = scheduler_of(model, pages=40, max_batch=2, token_budget=64)
    for rid in "abc":
        scheduler.add(generation(rid, 1, 2))
    assert spans(scheduler.schedule()) == [("a", 1), ("b", 1)]


def test_the_sampler_is_asked_only_for_rows_that_need_a_token(model: LanguageModel) -> None:
    """Scores of a token in the middle of a prompt are known already, and cost the widest product of all."""
    node, scheduler = scheduler_of(model, pages=40, max_batch=2, token_budget=4)
    scheduler.add(generation("long", 6, 2))
    first = node.declare(scheduler.schedule())
    assert "sampler" not in first.resources
    run(node, scheduler, scheduler.schedule())
    second = node.declare(scheduler.schedule())
    assert [segment.request_id for segment in second.resources["sampler"].rows] == ["long"]


def test_close_gives_everything_back(model: LanguageModel) -> None:
    """A caller may stop listening at any moment."""
    node, scheduler = scheduler_of(model, pages=8, max_batch=2, token_budget=8)
    for rid in "abc":
        scheduler.add(generation(rid, 3, 4))
    run(node, scheduler, scheduler.schedule())
    scheduler.close()
    assert scheduler.idle
    assert len(node.cache.ledger.free) == 8


@pytest.mark.parametrize(("max_batch", "token_budget"), [(0, 8), (4, 3)])
def test_limits_that_cannot_work_are_refused(model: LanguageModel, max_batch: int, token_budget: int) -> None:
    """With less than a token a row, some text would stand still while others run."""
    with pytest.raises(ArgumentError, match=f"got {max_batch} and {token_budget}"):
        scheduler_of(model, pages=8, max_batch=max_batch, token_budget=token_budget)


@settings(max_examples=60, deadline=None)
@given(
    requests=st.lists(st.tuples(st.integers(1, 14), st.integers(1, 10)), min_size=1, max_size=12),
    pages=st.integers(6, 12),
    max_batch=st.integers(1, 4),
    extra=st.integers(0, 9),
)
def test_everything_ends_and_every_page_returns(
    model: LanguageModel, requests: list[tuple[int, int]], pages: int, max_batch: int, extra: int
) -> None:
    """Whatever the sizes: no stall, no starvation, no step over budget, no refused step."""
    node, scheduler = scheduler_of(model, pages=pages, max_batch=max_batch, token_budget=max_batch + extra)
    for at, (prompt, new) in enumerate(requests):
        scheduler.add(generation(str(at), prompt, new))
    ended: list[str] = []
    for _ in range(1000):
        if scheduler.idle:
            break
        rows = scheduler.schedule()
        assert 0 < sum(row.span for row in rows) <= max_batch + extra
        ended.extend(each.rid for each in run(node, scheduler, rows))
        node.runner.check_integrity()
    assert sorted(ended) == sorted(str(at) for at in range(len(requests)))
    assert len(node.cache.ledger.free) == pages
