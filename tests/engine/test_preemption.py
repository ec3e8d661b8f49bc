"""What a request says does not depend on what was cached, preempted, offloaded or computed again."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.toys import PREEMPTIONS, assert_same, completions, tight_engine
from treadle.engine.engine import Engine
from treadle.engine.generation import Generation, Row
from treadle.engine.node import Node
from treadle.engine.requests import Completion, Delta, GenerationRequest
from treadle.engine.resources.step import SubmoduleStep
from treadle.engine.scheduler import Preemption
from treadle.errors import ArgumentError


def engine_of(
    path: Path, preemption: Preemption, *, cached: bool, tokens: int = 96, seats: int = 4
) -> Engine:
    return tight_engine(path, preemption, max_batch=seats, cache_tokens=tokens, prefix_cache=cached)


def requests_of(count: int, *, new: int = 40) -> list[GenerationRequest]:
    """Many that begin alike, some drawn and some greedy."""
    return [
        GenerationRequest(
            f"r{at}",
            (*(3 + place % 40 for place in range(5 + 9 * (at % 4))), 50 + at),
            max_new_tokens=new - at,
            ignore_eos=True,
            temperature=float(at % 2),
            seed=at,
            repetition_penalty=1.0 + 0.3 * (at % 3),
            logprobs=2,
        )
        for at in range(count)
    ]


@pytest.fixture(scope="module")
def alone(toy_path: Path) -> dict[str, Completion]:
    """Each request by itself, in an engine with room for anything."""
    engine = engine_of(toy_path, "never", cached=False, tokens=512, seats=1)
    return completions(engine, requests_of(8))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_a_pool_that_is_too_small_changes_nothing_but_the_order(
    toy_path: Path, alone: dict[str, Completion], preemption: Preemption, cached: bool
) -> None:
    """Six pages for four texts of up to five: whoever makes room goes on where it was."""
    assert_same(completions(engine_of(toy_path, preemption, cached=cached), requests_of(8)), alone)


@pytest.mark.parametrize("preemption", ["recompute", "offload"])
def test_the_oldest_ends_first_and_the_youngest_makes_room(toy_path: Path, preemption: Preemption) -> None:
    """Of two that do not fit together, the first one never waits."""
    engine = engine_of(toy_path, preemption, cached=False, tokens=48, seats=2)
    told = list(engine.stream(requests_of(2, new=30)))
    assert [each.id for each in told if isinstance(each, Completion)] == ["r0", "r1"]
    spoken = "".join(each.id[1] for each in told if isinstance(each, Delta))
    assert re.fullmatch("0*(01|10)+0{3,}1{3,}", spoken), spoken
    assert engine.node.cache.ledger.available == engine.node.cache.ledger.total


def test_a_common_beginning_is_computed_once(toy_path: Path) -> None:
    """The second request computes its own end only, and the next turn of a text what is new."""
    engine, prompt = engine_of(toy_path, "never", cached=True, tokens=256), tuple(range(3, 60))
    (first,) = engine.generate([GenerationRequest("a", prompt, 20, ignore_eos=True)])
    for text, cached in ((prompt, 48), ((*prompt, *first.token_ids), 64), (prompt[1:], 0)):
        taken = engine._intake.take(GenerationRequest("b", text, 5), 0, streamed=False)
        assert isinstance(taken, Generation)
        engine.node.open(taken, 0)
        assert taken.computed == cached
        engine.node.close(taken)
    (again,) = engine.generate([GenerationRequest("c", prompt, 20, ignore_eos=True)])
    assert again.token_ids == first.token_ids


@settings(max_examples=12, deadline=None)
@given(
    preemption=st.sampled_from(PREEMPTIONS),
    cached=st.booleans(),
    tokens=st.integers(5, 12),
    seats=st.integers(1, 6),
    order=st.permutations(range(8)),
)
def test_any_pool_any_order(
    toy_path: Path,
    alone: dict[str, Completion],
    preemption: Preemption,
    cached: bool,
    tokens: int,
    seats: int,
    order: list[int],
) -> None:
    """Nothing stalls and nobody is forgotten."""
    engine = engine_of(toy_path, preemption, cached=cached, tokens=16 * tokens, seats=seats)
    requests = requests_of(8)
    assert_same(completions(engine, [requests[at] for at in order]), alone)


def test_whoever_leaves_in_the_middle_leaves_nothing_behind(toy_path: Path) -> None:
    """Those that are away too."""
    engine = engine_of(toy_path, "offload", cached=False, tokens=64)
    running = engine.generate(requests_of(8, new=40))
    next(running)
    running.close()
    assert len(engine.node.cache.ledger.free) == engine.node.cache.ledger.total
    engine.node.runner.check_integrity()
    assert len(list(engine.generate(requests_of(2)))) == 2


@pytest.mark.parametrize(("preemption", "tokens"), [("offload", 0), ("never", 16), ("offload", -1)])
def test_room_that_nobody_can_use_is_refused(toy_path: Path, preemption: Preemption, tokens: int) -> None:
    """A setting without an effect is a mistake."""
    with pytest.raises(ArgumentError, match="needs host_tokens"):
        Engine.load(str(toy_path), preemption=preemption, host_tokens=tokens)


def test_an_unknown_preemption_is_named(toy_path: Path) -> None:
    """With what there is."""
    with pytest.raises(ArgumentError, match=r"one of \('never', 'recompute', 'offload'\), got 'maybe'"):
        Engine.load(str(toy_path), preemption="maybe")  # type: ignore[arg-type]


def test_a_common_beginning_is_computed_once_also_when_all_ask_at_once(
    toy_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is opened before it can compute would find nothing, and compute the same again."""
    spans: list[int] = []
    declare = Node.declare

    def counting(node: Node, rows: Sequence[Row]) -> SubmoduleStep:
        spans.extend(row.span for row in rows)
        return declare(node, rows)

    monkeypatch.setattr(Node, "declare", counting)
    common = tuple(3 + place % 40 for place in range(48))
    requests = [GenerationRequest(f"r{at}", (*common, 50 + at), max_new_tokens=1) for at in range(4)]
    completions(engine_of(toy_path, "never", cached=True, tokens=512), requests)
    assert sum(spans) == len(common) + len(requests)
