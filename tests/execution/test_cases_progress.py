"""A run always gets on: nobody who waits holds what another one needs, and a wait costs nothing."""

import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from treadle.errors import StepsFailedError
from treadle.execution import (
    Event,
    Retry,
    StepEnded,
    StepRetrying,
    StepRunner,
    StepSpec,
    StepStarted,
)
from treadle.fray import JobRequest, ResourceConfig, ThreadClient, current_client, stop_requested
from treadle.kernel import Done, Failed, Skipped

pytestmark = pytest.mark.timeout(60)  # a run that hangs fails here


@pytest.mark.parametrize("client", [None, ThreadClient(1)])
def test_runs_inside_runs_inside_runs_get_on_with_one_slot(toy: Any, client: ThreadClient | None) -> None:
    """A task that submits tasks to its own pool and waits for them hangs when it has the last thread."""

    def nested(depth: int) -> int:
        chain = [toy.step(f"d{depth}-0")]
        for place in range(1, 3):
            chain.append(toy.step(f"d{depth}-{place}", chain[-1]))
        deeper = (
            toy.step(f"deeper{depth}", chain[-1], body=lambda: nested(depth + 1)) if depth < 4 else chain[-1]
        )
        return len(StepRunner(1, client).run([deeper, *chain]))

    assert nested(0) == 4
    assert len(toy.ran) == 5 * 3 + 4


def test_a_step_may_wait_for_a_job_of_its_own_with_one_slot(toy: Any) -> None:
    def body() -> int:
        return current_client().submit(JobRequest("part", lambda: 7)).result()

    step = toy.step("a", body=body)
    assert StepRunner(1, ThreadClient(1)).run([step])[step.id] == 7


def test_a_step_is_handed_over_only_when_what_it_needs_is_done(toy: Any) -> None:
    """Dependents that hold all threads, waiting for a step that gets none, hang for ever, on a second run."""
    chain: list[StepSpec] = []
    for place in range(10):
        pause = (10 - place) / 1000
        chain.append(toy.step(f"s{place}", *chain, body=lambda pause=pause: time.sleep(pause)))
    client = ThreadClient(4)
    for _ in range(2):
        events: list[Event] = []
        StepRunner(4, client, reporter=events.append).run([*reversed(chain)], force=["s0"])
        told = [(type(event), event.name) for event in events if isinstance(event, StepStarted | StepEnded)]
        assert told == [(kind, f"s{n}") for n in range(10) for kind in (StepStarted, StepEnded)]


def test_a_run_that_was_cancelled_gives_back_what_it_held(toy: Any) -> None:
    """A slot that outlives the run that held it keeps every later run waiting for ever."""
    client = ThreadClient(2, resources=ResourceConfig(cpu=4, tags={"licence": 1}))
    licence = ResourceConfig(tags={"licence": 1})

    def body() -> None:
        while not stop_requested():
            time.sleep(0.001)
        raise RuntimeError("stopped")

    def interrupt(event: Event) -> None:
        if isinstance(event, StepStarted):
            raise KeyboardInterrupt

    holders = [toy.step(f"h{place}", body=body, resources=licence) for place in range(3)]
    with pytest.raises(KeyboardInterrupt):
        StepRunner(2, client, reporter=interrupt).run(holders)
    after = toy.step("after", resources=licence)
    assert StepRunner(2, client).run([after])[after.id] == "after"


class Calls:
    """How many functions the thread of the run calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and threading.current_thread().name == "treadle-run":
            self.count += 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Calls()
    threading.setprofile(made)
    yield made
    threading.setprofile(None)
    sys.setprofile(None)


def test_many_blocked_steps_cost_nothing_while_they_wait(toy: Any, calls: Calls) -> None:
    """A loop that looks at every blocked task again and again burns a core while nothing happens."""
    seen: list[int] = []

    def sleeper() -> None:
        for _ in range(3):
            time.sleep(0.2)
            seen.append(calls.count)

    first = toy.step("first", body=sleeper)
    StepRunner().run([toy.step(f"s{place:03}", first) for place in range(500)])
    assert seen[0] > 0, "the thread was watched"
    assert seen[2] - seen[1] < 50, "and at rest meanwhile"


def test_the_work_for_a_step_does_not_grow_with_the_steps_that_wait(toy: Any, calls: Calls) -> None:
    """A scheduler that walks all waiting jobs for each one that ends takes all cores after some hours."""
    costs = []
    for size in (100, 1_000):
        before = calls.count
        root = toy.step(f"root{size}")
        StepRunner(4).run([toy.step(f"f{size}-{place}", root) for place in range(size)])
        costs.append((calls.count - before) / size)
    assert costs[1] < 1.5 * costs[0]


def test_a_heartbeat_that_never_rests_reports_no_good_step_as_lost(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where two clean up after a step, the one that comes late turns a success into a lost lease."""
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", "0.003")

    def body() -> bool:
        time.sleep(0.004)  # some beats long
        return stop_requested()

    events: list[Event] = []
    steps = [toy.step(f"s{place:03}", body=body) for place in range(300)]
    results = StepRunner(4, reporter=events.append).run(steps)
    assert set(results.values()) == {False}, "no body was told that its lease is lost"
    assert not [event for event in events if isinstance(event, StepRetrying)]
    assert results.counts == {Done: 300}


def test_a_timeout_ends_the_attempt_and_the_next_one_may_succeed(toy: Any) -> None:
    tries: list[int] = []

    def body() -> str:
        tries.append(1)
        while len(tries) == 1 and not stop_requested():
            time.sleep(0.001)
        if len(tries) == 1:
            raise RuntimeError("stopped on request")
        return "second"

    step = toy.step("a", body=body, timeout=0.05, retry=Retry(2, delay=0))
    results = StepRunner().run([step])
    assert (results[step.id], results.outcomes[step.id].attempts) == ("second", 2)


def test_a_body_that_does_not_stop_costs_no_independent_step(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its thread; with one thread the others wait for that, and are not skipped because of it."""
    monkeypatch.setattr("treadle.execution.running.jobs._GRACE", 0.05)
    given_up = threading.Event()

    def report(event: Event) -> None:
        if isinstance(event, StepEnded) and event.name == "a":
            given_up.set()

    a = toy.step("a", body=lambda: given_up.wait(30), timeout=0.05)
    others = [toy.step("b"), toy.step("c"), toy.step("needs-a", a)]
    with pytest.raises(StepsFailedError, match="did not stop within") as caught:
        StepRunner(1, reporter=report).run([a, *others])
    ends = {each.name: type(each.outcome) for each in caught.value.results.outcomes.values()}  # type: ignore[attr-defined]
    assert ends == {"a": Failed, "b": Done, "c": Done, "needs-a": Skipped}


def test_a_wait_for_the_next_attempt_holds_no_slot(toy: Any) -> None:
    order: list[str] = []

    def fails_first() -> None:
        order.append("a")
        if len(order) == 1:
            raise ValueError("not yet")

    a = toy.step("a", body=fails_first, retry=Retry(2, delay=0.2, jitter=0))
    b = toy.step("b", body=lambda: order.append("b"))
    StepRunner(1).run([a, b])
    assert order == ["a", "b", "a"]


def test_what_is_printed_stays_with_its_step_and_the_streams_are_given_back(
    toy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of parallel steps that mix are of no use, and a lost sys.stdout is worse."""
    together = threading.Barrier(4)
    stdout = sys.stdout

    def body(name: str) -> None:
        together.wait(20)
        for number in range(300):
            print(f"{name} line {number}")

    names = [f"s{place}" for place in range(4)]
    steps = [toy.step(name, body=lambda name=name: body(name)) for name in names]
    StepRunner(4).run(steps)
    assert sys.stdout is stdout
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 * 300
    for name, step in zip(names, steps, strict=True):
        expected = [f"{name} line {number}" for number in range(300)]
        assert [line for line in lines if line.startswith(name)] == [f"{name} | {each}" for each in expected]
        log = Path(toy.store, ".treadle", "logs", f"{name}/{step.hash_id}.log").read_text()
        assert [line.partition(" | ")[2] for line in log.splitlines()] == expected


def test_one_point_of_a_fan_that_fails_costs_no_other(toy: Any) -> None:
    """One failing job of a sweep must not kill its siblings."""
    toy.fails = {"s17"}
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([toy.step(f"s{place}") for place in range(50)])
    assert len(caught.value.results) == 49
    assert len(toy.ran) == 50
