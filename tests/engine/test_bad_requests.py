"""What is wrong with one request costs that one: its neighbours say what they say without it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.conftest import WriteToy
from tests.engine.toys import PREEMPTIONS, assert_nothing_left, completions, failing, tight_engine
from treadle.engine.engine import Engine
from treadle.engine.models.build import Kernels
from treadle.engine.requests import Completion, GenerationRequest
from treadle.engine.resources.step import ResourceStep, StepContext
from treadle.engine.scheduler import Preemption
from treadle.engine.weights import open_gguf

KERNELS: tuple[Kernels, ...] = ("torch", "native")
WAYS: dict[str, dict[str, Any]] = {
    "torch": {"kernels": "torch"},
    "native": {"kernels": "native"},
    "fixed shapes": {"kernels": "torch", "buckets": (2, 4)},
    "planned ahead": {"kernels": "native", "plan_ahead": True},
    "fixed shapes, planned ahead": {"kernels": "torch", "buckets": (4,), "plan_ahead": True},
}


def asked(count: int) -> list[GenerationRequest]:
    """Good requests of all kinds; some begin alike."""
    return [
        GenerationRequest(
            f"g{at}",
            (*range(10, 12 + 9 * (at % 4)), 50 + at),
            max_new_tokens=4 + 3 * (at % 5),
            ignore_eos=True,
            temperature=(0.0, 1.0, 0.0, 0.8)[at % 4],
            seed=at,
            top_p=0.9,
            repetition_penalty=1.0 + 0.2 * (at % 2),
            logprobs=2 if at % 3 == 0 else None,
        )
        for at in range(count)
    ]


def bad(rid: str, prompt: tuple[int, ...], new: int = 5, **options: Any) -> GenerationRequest:
    return GenerationRequest(rid, prompt, new, **options)


BAD: Mapping[str, tuple[GenerationRequest, str]] = {
    each.id: (each, said)
    for each, said in (
        (bad("empty", ()), "the prompt is empty: there is nothing to go on from"),
        (bad("context", (5,) * 96), "has 96 tokens, the model's context 96, and one must be left"),
        (bad("pool", (5,) * 60, 40), "need room for 95 tokens, the cache has 80"),
        (bad("unknown", (5, 263)), "unknown token id 263: ids run from 0 to 262"),
        (bad("below", (5, -1)), "unknown token id -1: ids run from 0 to 262"),
        (bad("stop", (5, 6), stop_tokens=(999,)), "unknown token id 999: ids run from 0 to 262"),
    )
}
GOOD = asked(9)


@pytest.fixture(scope="module")
def path(write_toy: WriteToy) -> Path:
    """A model that compiled code can run too."""
    return write_toy(head_width=16, tied=False)


@pytest.fixture(scope="module")
def without(path: Path) -> dict[str, Completion]:
    """What the good requests say when nothing is wrong."""
    return completions(tight_engine(path, cache_tokens=800, kernels="torch"), GOOD)


@pytest.fixture(scope="module")
def strange(without: dict[str, Completion]) -> int:
    """A token that no good request has to do with."""
    met = {token for each in without.values() for token in each.token_ids}
    met.update(token for each in GOOD for token in each.prompt if isinstance(token, int))
    return min(set(range(3, 263)) - met)


def assert_as_without(found: Mapping[str, Completion], without: Mapping[str, Completion]) -> None:
    for each in GOOD:
        got, expected = found[each.id], without[each.id]
        assert (got.error, got.token_ids, got.text) == (None, expected.token_ids, expected.text)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("preemption", PREEMPTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_run_is_told_why_and_the_others_say_the_same(
    path: Path, without: dict[str, Completion], way: str, preemption: Preemption, streamed: bool
) -> None:
    """Each kind before the others, between them and after."""
    refused = [each for each, _ in BAD.values()]
    mixed = [*refused[:2], *GOOD[:3], *refused[2:4], *GOOD[3:], *refused[4:]]
    engine = tight_engine(path, preemption, **WAYS[way])
    found = completions(engine, mixed, streamed=streamed)
    assert_as_without(found, without)
    for rid, (request, said) in BAD.items():
        assert (found[rid].finish_reason, found[rid].token_ids, found[rid].text) == ("error", (), "")
        assert said in str(found[rid].error)
        assert found[rid].prompt_tokens in (0, len(request.prompt))
    assert_as_without(completions(engine, GOOD), without)


@settings(max_examples=12)
@given(
    order=st.permutations([*range(len(GOOD)), *BAD, *BAD]),
    preemption=st.sampled_from(PREEMPTIONS),
    cached=st.booleans(),
    seats=st.integers(1, 6),
)
def test_any_mixture_in_any_order(
    path: Path,
    without: dict[str, Completion],
    order: list[int | str],
    preemption: Preemption,
    cached: bool,
    seats: int,
) -> None:
    """Refused ones first, last, and many in a row: no request is lost, none is told twice."""
    requests = [
        GOOD[each] if isinstance(each, int) else replace(BAD[each][0], id=f"{each} {at}")
        for at, each in enumerate(order)
    ]
    engine = tight_engine(path, preemption, max_batch=seats, prefix_cache=cached, kernels="torch")
    assert_as_without(completions(engine, requests), without)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_stops_that_never_come_end_at_the_limit_beside_others(
    path: Path, without: dict[str, Completion], preemption: Preemption
) -> None:
    """A condition is no promise, whatever its kind."""
    long = [bad(f"h{at}", (30 + at, 31), 30, ignore_eos=True) for at in range(3)]
    plain = completions(tight_engine(path), long)
    never = next(token for token in range(263) if not any(token in each.token_ids for each in plain.values()))
    hopeful = [replace(each, stop=("never there",), stop_tokens=(never,)) for each in long]
    engine = tight_engine(path, preemption)
    found = completions(engine, [*GOOD[:4], *hopeful, *GOOD[4:]], streamed=True)
    assert_as_without(found, without)
    assert {rid: found[rid] for rid in plain} == plain
    assert {each.finish_reason for each in plain.values()} == {"length"}


def poisoned(write_toy: WriteToy, path: Path, token: int) -> Path:
    """The same model, but for a NaN in what it knows of one token."""
    tensor = open_gguf(path).tensor("model.embed_tokens.weight", (263, 32))
    embedding = np.array(tensor.float().numpy())
    embedding[token, 3] = np.nan
    return write_toy(head_width=16, tied=False, change={"token_embd.weight": embedding})


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("preemption", PREEMPTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_weights_that_are_no_numbers_end_those_who_reach_them(
    write_toy: WriteToy,
    path: Path,
    without: dict[str, Completion],
    strange: int,
    way: str,
    preemption: Preemption,
    cached: bool,
) -> None:
    """Also where others get the pages that held them: masked is times 0, and a NaN stays a NaN."""
    damaged = poisoned(write_toy, path, strange)
    engine = tight_engine(damaged, preemption, prefix_cache=cached, **WAYS[way])
    ill = [
        bad("first", (strange, *range(10, 40)), 30),
        bad("last", (*range(10, 33), strange), 30, temperature=1.0, logprobs=3),
        bad("middle", (*range(10, 20), strange, *range(20, 30)), 30, repetition_penalty=1.4),
    ]
    found = completions(engine, [ill[0], *GOOD[:2], ill[1], *GOOD[2:6], ill[2], *GOOD[6:]], streamed=True)
    assert_as_without(found, without)
    for each in ill:
        assert found[each.id].error == "the model's scores are not numbers: its weights may be damaged"
        assert (found[each.id].finish_reason, found[each.id].token_ids) == ("error", ())
    assert_as_without(completions(engine, GOOD), without)


@pytest.mark.parametrize("way", WAYS)
def test_a_text_that_comes_to_damaged_weights_ends_there(
    write_toy: WriteToy, path: Path, without: dict[str, Completion], way: str
) -> None:
    """With what it had, in the middle of a batch; and what begins as it did is not lost."""
    written = {rid: each.token_ids for rid, each in without.items()}
    rid, token = next(
        (rid, token)
        for rid, tokens in written.items()
        for place, token in enumerate(tokens[:-1])
        if place > 1
        and not any(token in others for other, others in written.items() if other != rid)
        and not any(token in each.prompt for each in GOOD)
    )
    engine = tight_engine(poisoned(write_toy, path, token), cache_tokens=800, **WAYS[way])
    found = completions(engine, GOOD)
    end = written[rid].index(token)
    assert found[rid].token_ids == written[rid][: end + 1]
    assert "not numbers" in str(found[rid].error)
    assert_as_without({**found, rid: without[rid]}, without)
    request = next(each for each in GOOD if each.id == rid)
    assert isinstance(request.prompt, tuple)
    again = replace(request, max_new_tokens=end + 1)
    assert completions(engine, [again])[rid].token_ids == written[rid][: end + 1]


@pytest.mark.parametrize("way", WAYS)
def test_damaged_weights_that_only_padding_meets_hurt_nobody(
    write_toy: WriteToy, path: Path, without: dict[str, Completion], way: str
) -> None:
    """What fills a shape up computes something, of the token 0, beside those who asked."""
    healthy = [each for each in GOOD if 0 not in without[each.id].token_ids]
    assert len(healthy) > 5
    found = completions(tight_engine(poisoned(write_toy, path, 0), **WAYS[way]), healthy)
    assert {rid: each.token_ids for rid, each in found.items()} == {
        each.id: without[each.id].token_ids for each in healthy
    }


def assert_prefixes(found: Mapping[str, Completion], without: Mapping[str, Completion], why: str) -> None:
    """Each says what it says without the fault, or as much of it as it came to."""
    for each in GOOD:
        got, expected = found[each.id], without[each.id]
        if got.finish_reason == "error":
            assert why in str(got.error)
            assert got.token_ids == expected.token_ids[: len(got.token_ids)]
        else:
            assert got.token_ids == expected.token_ids


@settings(max_examples=20)
@given(
    faults=st.sets(st.integers(0, 30), min_size=1, max_size=4),
    after=st.booleans(),
    preemption=st.sampled_from(PREEMPTIONS),
    cached=st.booleans(),
    plan_ahead=st.booleans(),
    kernels=st.sampled_from(KERNELS),
)
def test_passes_that_fail_take_their_rows_and_no_others(
    path: Path,
    without: dict[str, Completion],
    faults: set[int],
    after: bool,
    preemption: Preemption,
    cached: bool,
    plan_ahead: bool,
    kernels: Kernels,
) -> None:
    """Whichever passes fail, and whether or not they had written to the cache: the engine goes on, and the
    same requests say what they always say."""
    engine = tight_engine(path, preemption, prefix_cache=cached, kernels=kernels)
    broken = failing(
        engine,
        lambda number: RuntimeError(f"fault {number}") if number in faults else None,
        after=after,
        preemption=preemption,
        plan_ahead=plan_ahead,
    )
    found = completions(broken, GOOD, streamed=True)
    assert_prefixes(found, without, "the forward pass failed: fault ")
    failed = [each for each in found.values() if each.finish_reason == "error"]
    assert 1 <= len(failed) <= 4 * len(faults)
    assert_as_without(completions(engine, GOOD), without)


def counting_down(
    verb: Callable[[ResourceStep, StepContext], object], left: int
) -> Callable[[ResourceStep, StepContext], object]:
    """The same verb, which fails at that call."""
    calls = iter(range(10_000))

    def failing_once(step: ResourceStep, ctx: StepContext) -> object:
        if next(calls) == left:
            raise ValueError("a fault in a resource")
        return verb(step, ctx)

    return failing_once


@settings(max_examples=30)
@given(
    key=st.sampled_from(["kv", "positions", "attention", "sampler"]),
    verb=st.sampled_from(["admit", "plan", "commit"]),
    call=st.integers(0, 12),
    preemption=st.sampled_from(PREEMPTIONS),
    cached=st.booleans(),
    plan_ahead=st.booleans(),
)
def test_a_resource_that_fails_once_takes_the_rows_of_its_step(
    path: Path,
    without: dict[str, Completion],
    key: str,
    verb: str,
    call: int,
    preemption: Preemption,
    cached: bool,
    plan_ahead: bool,
) -> None:
    """In whichever verb: what the others had reserved or committed for that step is given back."""
    engine = tight_engine(path, preemption, prefix_cache=cached, plan_ahead=plan_ahead, kernels="torch")
    resource = engine.node.runner.resources[key]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, verb, counting_down(getattr(resource, verb), call))
        found = completions(engine, GOOD)
    assert_prefixes(found, without, "a fault in a resource")
    assert_as_without(completions(engine, GOOD), without)


def test_an_engine_whose_every_pass_fails_tells_every_request(path: Path) -> None:
    """A broken machine is said as often as there are requests, and not by a hang."""
    engine: Engine = failing(tight_engine(path), lambda number: MemoryError())
    found = completions(engine, GOOD)
    assert {each.error for each in found.values()} == {"the forward pass failed: MemoryError"}
    assert_nothing_left(engine)
