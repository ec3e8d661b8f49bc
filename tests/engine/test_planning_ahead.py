"""A step is reserved and planned on a thread while the one before it computes, and nobody notices."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_preemption import requests_of
from tests.engine.toys import PREEMPTIONS, completions, failing, tight_engine, watched
from treadle.engine.engine import Engine
from treadle.engine.models.build import Kernels
from treadle.engine.requests import GenerationRequest
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import ResourceStep, StepContext, SubmoduleStep
from treadle.engine.scheduler import Preemption

PATIENCE = 30.0  # seconds, until a test that would wait for ever fails


def engine_of(path: Path, *, plan_ahead: bool, kernels: Kernels = "torch") -> Engine:
    return tight_engine(path, cache_tokens=256, plan_ahead=plan_ahead, kernels=kernels)


@pytest.mark.parametrize("kernels", ["torch", "native"])
def test_what_is_said_is_the_same(write_toy: Callable[..., Path], kernels: Kernels) -> None:
    """Greedy and drawn, while requests join and end."""
    path = write_toy(head_width=16)
    plain, ahead = (
        completions(engine_of(path, plan_ahead=each, kernels=kernels), requests_of(9))
        for each in (False, True)
    )
    assert plain == ahead


@settings(max_examples=15, deadline=None)
@given(
    preemption=st.sampled_from(PREEMPTIONS),
    cached=st.booleans(),
    tokens=st.integers(60, 200),
    stop=st.integers(3, 250),
)
def test_what_is_said_is_the_same_when_room_is_short_and_tokens_end_requests(
    toy_path: Path, preemption: Preemption, cached: bool, tokens: int, stop: int
) -> None:
    """A guess that was wrong leaves nothing behind: no page, no plan of another moment."""
    requests = [replace(each, stop_tokens=(stop,)) for each in requests_of(8, new=30)]
    plain, ahead = (
        completions(
            tight_engine(toy_path, preemption, cache_tokens=tokens, prefix_cache=cached, plan_ahead=each),
            requests,
        )
        for each in (False, True)
    )
    # Not the last digits of the log probabilities: torch adds up in another order when batch mates differ.
    assert {rid: each.token_ids for rid, each in plain.items()} == {
        rid: each.token_ids for rid, each in ahead.items()
    }


def test_the_next_step_is_planned_while_one_computes(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass does not return before the other thread has planned: one after the other would never end."""
    planned = threading.Event()
    pre_plan = type(toy_engine.node.runner).pre_plan
    threads = set()

    def noting(runner: object, step: SubmoduleStep) -> object:
        threads.add(threading.current_thread().name)
        results = pre_plan(toy_engine.node.runner, step)
        planned.set()
        return results

    def wait(number: int) -> None:
        assert planned.wait(PATIENCE)

    monkeypatch.setattr(type(toy_engine.node.runner), "pre_plan", noting)
    engine = watched(toy_engine, after=wait, plan_ahead=True)
    (done,) = engine.generate([GenerationRequest("a", (5, 6, 7), 8, ignore_eos=True)])
    assert (done.finish_reason, len(done.token_ids)) == ("length", 8)
    assert len(threads) == 1
    assert threads.pop().startswith("treadle-planner")


def test_what_was_planned_ahead_is_used(toy_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 12 steps that follow another one, each: a stage that never matches would be work for nothing."""
    promoted = []
    promote = PagedKvCache.promote

    def noting(cache: PagedKvCache, step: ResourceStep, ctx: StepContext) -> object:
        promoted.append(step)
        return promote(cache, step, ctx)

    monkeypatch.setattr(PagedKvCache, "promote", noting)
    engine = watched(toy_engine, plan_ahead=True)
    requests = [GenerationRequest(name, (5, 6, 7), 13, ignore_eos=True) for name in "ab"]
    assert [len(each.token_ids) for each in engine.generate(requests)] == [13, 13]
    assert len(promoted) == 12


def test_a_step_does_not_fail_because_the_next_one_cannot_be_planned(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Planning ahead is a help and no condition; that it failed is told."""

    def broken(runner: object, step: SubmoduleStep) -> object:
        raise RuntimeError("no plan")

    monkeypatch.setattr(type(toy_engine.node.runner), "pre_plan", broken)
    (done,) = watched(toy_engine, plan_ahead=True).generate(
        [GenerationRequest("a", (5, 6, 7), 4, ignore_eos=True)]
    )
    assert (done.finish_reason, len(done.token_ids)) == ("length", 4)
    assert "could not be planned ahead" in caplog.text
    assert not toy_engine.node.runner.staged


@pytest.mark.parametrize("plan_ahead", [False, True])
def test_what_a_failed_pass_left_in_the_cache_is_nobodys_prefix(toy_path: Path, plan_ahead: bool) -> None:
    """Its step was committed before it computed: pages that look full hold nothing."""
    prompt = tuple(range(10, 50))
    expected = completions(engine_of(toy_path, plan_ahead=False), [GenerationRequest("a", prompt, 6)])["a"]
    engine = engine_of(toy_path, plan_ahead=plan_ahead)
    broken = failing(
        engine, lambda number: RuntimeError("no memory") if number == 2 else None, plan_ahead=plan_ahead
    )
    assert completions(broken, [GenerationRequest("a", prompt, 6)])["a"].finish_reason == "error"
    again = completions(engine, [GenerationRequest("a", prompt, 6)])["a"]
    assert again == expected


def test_an_interrupt_waits_for_the_thread_that_still_stages(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in giving everything back: what the thread reserved after that would be nobody's."""
    interrupted, staged = threading.Event(), threading.Event()
    pre_admit, waiting = StepRunner.pre_admit, wait

    def slow(runner: StepRunner, step: SubmoduleStep) -> object:
        assert interrupted.wait(PATIENCE)
        outcome = pre_admit(runner, step)
        staged.set()
        return outcome

    def interrupt_once(futures: Sequence[Future[object]]) -> object:
        if interrupted.is_set():
            return waiting(futures)
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(StepRunner, "pre_admit", slow)
    monkeypatch.setattr("treadle.engine.planner.wait", interrupt_once)
    engine = watched(toy_engine, plan_ahead=True)
    with pytest.raises(KeyboardInterrupt):
        list(engine.generate([GenerationRequest("a", (5, 6, 7), 8, ignore_eos=True)]))
    assert staged.is_set()


def test_an_engine_that_planned_ahead_goes_on_after_a_fork(toy_engine: Engine) -> None:
    """Threads do not come along with one: its first step would wait for ever."""
    engine = watched(toy_engine, plan_ahead=True)
    requests = [GenerationRequest("a", (5, 6, 7), 8, ignore_eos=True)]
    expected = completions(engine, requests)
    child = os.fork()
    if not child:
        signal.alarm(int(PATIENCE))
        same = False
        try:
            same = completions(engine, requests) == expected
        finally:
            os._exit(not same)
    assert os.waitpid(child, 0)[1] == 0
