"""The runner when steps fail and when it is told to stop: what ends, what goes on, and who is told."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArgumentError, StepsFailedError
from treadle.execution import Event, RunEnded, StepRunner, StepSpec, StepStarted
from treadle.fray import ThreadClient, stop_requested
from treadle.kernel import Done, Failed, Skipped

GRAPHS = st.integers(1, 12).flatmap(
    lambda size: st.tuples(
        st.tuples(*[st.sets(st.integers(0, max(place - 1, 0))).map(set) for place in range(size)]),
        st.sets(st.integers(0, size - 1)),
        st.integers(1, 5),
        st.permutations(range(size)),
    )
)


@given(GRAPHS)
@settings(max_examples=60, deadline=None)
def test_random_graphs_with_random_failures_against_a_model(new_toy: Callable[[], Any], drawn: Any) -> None:
    edges, broken, workers, order = drawn
    toy = new_toy()
    toy.fails = {f"s{place}" for place in broken}
    steps: list[StepSpec] = []
    for place, deps in enumerate(edges):
        steps.append(toy.step(f"s{place}", *(steps[dep] for dep in deps if dep < place)))
    lost: dict[str, set[str]] = {}
    for each in steps:
        culprits = {d.id for d in each.deps if d.name in toy.fails and d.id not in lost}
        culprits.update(*(lost.get(d.id, ()) for d in each.deps))
        if culprits:
            lost[each.id] = culprits

    try:
        results = StepRunner(workers).run([steps[place] for place in order])
    except StepsFailedError as error:
        results = error.results  # type: ignore[assignment]
    outcomes = results.outcomes

    assert len(toy.ran) == len(set(toy.ran)), "none runs twice"
    for each in steps:
        outcome = outcomes[each.id].outcome
        if each.id in lost:
            assert isinstance(outcome, Skipped)
            assert set(outcome.because) == lost[each.id]
            assert each.name not in toy.ran
        else:
            assert isinstance(outcome, Failed if each.name in toy.fails else Done)
            assert all(toy.ran.index(dep.name) < toy.ran.index(each.name) for dep in each.deps)

    ran, toy.fails = set(toy.ran), set[str]()
    failed = {each.name for each in steps if isinstance(outcomes[each.id].outcome, Failed)}
    assert toy.ran_again(steps) == sorted({each.name for each in steps} - (ran - failed))
    assert toy.ran_again(steps) == []


def test_failures_are_told_with_causes_and_culprits(toy: Any) -> None:
    """Independent branches go on: one bad step must not cost a night."""
    alpha = toy.step("alpha")
    boom = toy.step("boom", alpha)
    child = toy.step("child", boom)
    steps = [alpha, boom, child, toy.step("gchild", child)]
    for name in ("d1", "d2", "d3"):
        steps.append(toy.step(name, steps[0] if name == "d1" else steps[-1]))
    toy.fails = {"boom"}
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run(steps)
    message = str(caught.value)
    assert message.splitlines()[0] == "1 of 7 steps failed; skipped because of them: 2"
    assert f"failed {boom.id}: ValueError: boom is broken" in message
    assert f"skipped {child.id}: because of {boom.id}" in message
    assert len(caught.value.exceptions) == 1
    assert "boom is broken" in str(caught.value.exceptions[0])
    assert any(boom.id in note for note in caught.value.exceptions[0].__notes__)
    results = caught.value.results
    assert results[steps[-1].id] == "d3"
    with pytest.raises(KeyError):
        results[boom.id]
    assert len(results) == 4


def test_with_stop_nothing_new_is_started(toy: Any) -> None:
    toy.fails = {"a"}
    steps = [toy.step("a"), toy.step("b"), toy.step("c")]
    with pytest.raises(StepsFailedError) as caught:
        StepRunner(1).run(steps, on_failure="stop")
    assert toy.ran == ["a"]
    outcomes = caught.value.results.outcomes  # type: ignore[attr-defined]
    assert outcomes[steps[2].id].outcome == Skipped((steps[0].id,))
    with pytest.raises(ArgumentError, match="on_failure: expected"):
        StepRunner().run(steps, on_failure="explode")  # type: ignore[arg-type]


def test_a_body_that_wants_to_leave_the_process_is_a_failed_step(toy: Any) -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(StepsFailedError, match="SystemExit"):
        StepRunner().run([toy.step("a", body=leave)])


def test_a_step_that_cannot_be_handed_over_is_a_failed_step(toy: Any) -> None:
    class Refusing(ThreadClient):
        def submit(self, request: Any) -> Any:
            if request.name.startswith("b-"):
                raise RuntimeError("no room")
            return super().submit(request)

    steps = [toy.step("a"), toy.step("b"), toy.step("c")]
    with pytest.raises(StepsFailedError, match="RuntimeError: no room"):
        StepRunner(fray_client=Refusing(2)).run([*steps, toy.step("d", steps[1])])
    assert sorted(toy.ran) == ["a", "c"]


def test_a_value_that_cannot_be_kept_names_type_and_step_and_leaves_no_record(toy: Any) -> None:
    step = toy.step("a", body=lambda: {1, 2})
    with pytest.raises(StepsFailedError, match=f"step {step.id} returned .*builtins.set"):
        StepRunner().run([step])
    assert not toy.is_done(step)
    assert not Path(step.output_path).exists()


@pytest.mark.timeout(20)
def test_ctrl_c_starts_nothing_new_stops_the_running_and_frees_the_steps(toy: Any) -> None:
    """Runners that work off their queue first cannot be stopped when it matters."""
    stopped: list[str] = []
    both = threading.Barrier(2, action=lambda: os.kill(os.getpid(), signal.SIGINT))

    def body() -> None:
        both.wait()
        while not stop_requested():
            time.sleep(0.001)
        stopped.append("asked")
        raise RuntimeError("stopped on request")

    steps = [toy.step(f"s{place}", body=body) for place in range(12)]
    events: list[Event] = []
    with pytest.raises(KeyboardInterrupt):
        StepRunner(2, reporter=events.append).run(steps)
    assert len(toy.ran) == len(stopped) == 2
    assert isinstance(events[-1], RunEnded)
    again = [toy.step(f"s{place}") for place in range(12)]
    assert toy.ran_again(again) == sorted(each.name for each in again)


@pytest.mark.timeout(20)
def test_an_error_of_the_reporter_ends_the_run_and_goes_on(toy: Any) -> None:
    def report(event: Event) -> None:
        if isinstance(event, StepStarted):
            raise RuntimeError("the terminal is gone")

    def body() -> None:
        while not stop_requested():
            time.sleep(0.001)

    with pytest.raises(RuntimeError, match="the terminal is gone"):
        StepRunner(1, reporter=report).run([toy.step("a", body=body), toy.step("b", body=body)])
    assert toy.ran == ["a"]


@pytest.mark.parametrize(("given", "name"), [("processes", "processes"), ("ray", "ray"), (2, "processes")])
def test_what_is_no_client_is_refused_with_what_would_be(given: Any, name: str) -> None:
    with pytest.raises(
        ArgumentError, match=rf'fray_client: expected .*FrayClient\("{name}"\), got {given!r}'
    ):
        StepRunner(fray_client=given)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class MuteExit(SystemExit):
    __str__ = __repr__ = Mute.__str__


class Proud(Exception):
    def add_note(self, note: str) -> None:
        raise SystemExit(4)


@dataclass(frozen=True)
class Frozen(Exception):
    code: int = 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "error", [Mute(), MuteExit(), Proud("p"), Frozen(), KeyboardInterrupt(), StopIteration(1)]
)
def test_an_exception_of_any_kind_is_the_named_failure_of_its_step_only(
    toy: Any, error: BaseException
) -> None:
    """One exception that cannot be printed or noted must not cost the results of all other steps."""

    def raise_it() -> None:
        raise error

    bad, good = toy.step("bad", body=raise_it), toy.step("good")
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([bad, good, toy.step("after", bad)])
    assert f"failed {bad.id}: {type(error).__name__}: " in str(caught.value)
    assert caught.value.results[good.id] == "good"
    [kept] = caught.value.exceptions
    assert error in (kept, kept.__cause__)


def test_the_message_of_very_many_failures_stays_readable(toy: Any) -> None:
    """A layer of failures above a layer of skips is a product; the outcomes have every culprit."""
    sources = [toy.step(f"a{place:02}") for place in range(30)]
    toy.fails = {each.name for each in sources}
    sink = toy.step("sink", *sources)
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([sink])
    assert str(caught.value).splitlines()[-1].endswith(" and 20 more")
    outcome = caught.value.results.outcomes[sink.id].outcome  # type: ignore[attr-defined]
    assert set(outcome.because) == {each.id for each in sources}


def test_a_dependency_that_vanishes_meanwhile_is_never_read_as_nothing(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that lists the files of a folder that is gone would give an empty result, and keep it."""
    monkeypatch.setattr("treadle.execution.running.presence._FRESH", 0.0)  # else seen after a second at most
    a = toy.step("a")
    StepRunner().run([a])
    remove = toy.step("remove", body=lambda: shutil.rmtree(a.output_path))
    b = toy.step("b", a, remove)
    with pytest.raises(StepsFailedError, match=f"failed {b.id}: ArtifactError: .*run again to build it anew"):
        StepRunner().run([b])
    assert toy.ran_again([b]) == ["a", "b"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("client", [None, ThreadClient(1)])
def test_ctrl_c_reaches_the_runs_inside_steps(toy: Any, client: ThreadClient | None) -> None:
    """Else a step that runs a hundred steps of its own goes through all of them after Ctrl-C."""

    once = threading.Lock()

    def inner() -> None:
        if once.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        while not stop_requested():
            time.sleep(0.001)

    def outer() -> int:
        return len(StepRunner(2, client).run([toy.step(f"in{place}", body=inner) for place in range(9)]))

    step = toy.step("outer", body=outer)
    with pytest.raises(KeyboardInterrupt):
        StepRunner(2, client).run([step])
    assert 2 <= len(toy.ran) <= 3, "the outer step and those that had begun"
    assert not toy.is_done(step), "half of it is not all of it"
