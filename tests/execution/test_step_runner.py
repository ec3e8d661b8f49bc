"""The runner: in order, once, as many at a time as allowed, and honest about failures."""

import contextvars
import linecache
import logging
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

from treadle.artifacts import Record, read_record
from treadle.errors import ArgumentError, ArtifactError, StepsFailedError, UnknownNameError
from treadle.execution import (
    CodeChanged,
    Event,
    RunEnded,
    RunPlanned,
    StepEnded,
    StepRunner,
    StepSpec,
    StepStarted,
)
from treadle.execution.freshness import look
from treadle.execution.graph import gather
from treadle.fray import FrayClient, ThreadClient, current_client, set_current_client, stop_requested
from treadle.kernel import Cached, Done, Failed, Skipped

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


class Toy:
    """Builds steps in one store and writes down which of them ran."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.ran: list[str] = []
        self.fails: set[str] = set()

    def step(
        self, name: str, *deps: StepSpec, body: Callable[[], Any] | None = None, **options: Any
    ) -> StepSpec:
        def fn(path: str) -> Any:
            self.ran.append(name)
            if name in self.fails:
                raise ValueError(f"{name} is broken")
            Path(path, "out.txt").write_text(name)
            return body() if body else name

        return StepSpec(name, fn, deps, output_path_prefix=str(self.store), **options)

    def ran_again(self, steps: list[StepSpec], **options: Any) -> list[str]:
        self.ran.clear()
        StepRunner().run(steps, **options)
        return sorted(self.ran)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


@pytest.fixture
def diamond(toy: Toy) -> list[StepSpec]:
    a = toy.step("a")
    b, c = toy.step("b", a), toy.step("c", a)
    return [a, b, c, toy.step("d", b, c)]


def test_results_by_step_id(toy: Toy, diamond: list[StepSpec]) -> None:
    results = StepRunner().run(reversed(diamond))
    assert toy.ran[0] == "a"
    assert toy.ran[-1] == "d"
    assert dict(results) == {each.id: each.name for each in diamond}
    assert {type(each.outcome) for each in results.outcomes.values()} == {Done}


def test_a_warm_run_runs_nothing_and_gives_the_same(toy: Toy, diamond: list[StepSpec]) -> None:
    first = dict(StepRunner().run(diamond))
    assert toy.ran_again(diamond) == []
    again = StepRunner().run(diamond)
    assert dict(again) == first
    assert {type(each.outcome) for each in again.outcomes.values()} == {Cached}
    assert all(each.started for each in again.outcomes.values())


@pytest.mark.parametrize(("gone", "again"), [("a", "abcd"), ("b", "bd"), ("c", "cd"), ("d", "d")])
def test_deleting_a_folder_reruns_that_step_and_what_depends_on_it(
    toy: Toy, diamond: list[StepSpec], gone: str, again: str
) -> None:
    StepRunner().run(diamond)
    folder = Path(next(each.output_path for each in diamond if each.name == gone))
    (folder / ".record.json").unlink()
    assert toy.ran_again(diamond) == list(again)
    assert toy.ran_again(diamond) == []


def test_a_missing_or_cut_file_is_not_done(toy: Toy, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    Path(diamond[1].output_path, "out.txt").unlink()
    assert toy.ran_again(diamond) == ["b", "d"]
    Path(diamond[3].output_path, "out.txt").write_text("")
    assert toy.ran_again(diamond) == ["d"]


def test_the_ancestors_of_a_done_step_are_not_missed(toy: Toy, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    Path(diamond[0].output_path, ".record.json").unlink()
    assert toy.ran_again(diamond[3:]) == []
    Path(diamond[3].output_path, ".record.json").unlink()
    assert toy.ran_again(diamond[3:]) == ["d"], "b and c are done, so a is not needed"


def test_force_reruns_a_step_and_what_depends_on_it(toy: Toy, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    assert toy.ran_again(diamond, force=["b"]) == ["b", "d"]
    assert toy.ran_again(diamond[3:], force=diamond[2].id) == ["c", "d"]
    with pytest.raises(UnknownNameError, match=r"unknown step 'x' \(known: a, b, c, d\)"):
        StepRunner().run(diamond, force=["x"])


def test_a_rebuild_elsewhere_is_noticed(toy: Toy, diamond: list[StepSpec]) -> None:
    """Dependents stand for the build of the dependency that they were made from, not for any."""
    StepRunner().run(diamond)
    StepRunner().run(diamond[:1], force=["a"])
    assert toy.ran_again(diamond) == ["b", "c", "d"]


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
def test_random_graphs_with_random_failures_against_a_model(
    tmp_path_factory: pytest.TempPathFactory, drawn: Any
) -> None:
    edges, broken, workers, order = drawn
    toy = Toy(tmp_path_factory.mktemp("store"))
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


def test_failures_are_told_with_causes_and_culprits(toy: Toy) -> None:
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


def test_with_stop_nothing_new_is_started(toy: Toy) -> None:
    toy.fails = {"a"}
    steps = [toy.step("a"), toy.step("b"), toy.step("c")]
    with pytest.raises(StepsFailedError) as caught:
        StepRunner(1).run(steps, on_failure="stop")
    assert toy.ran == ["a"]
    outcomes = caught.value.results.outcomes  # type: ignore[attr-defined]
    assert outcomes[steps[2].id].outcome == Skipped((steps[0].id,))
    with pytest.raises(ArgumentError, match="on_failure: expected"):
        StepRunner().run(steps, on_failure="explode")  # type: ignore[arg-type]


def test_a_body_that_wants_to_leave_the_process_is_a_failed_step(toy: Toy) -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(StepsFailedError, match="SystemExit"):
        StepRunner().run([toy.step("a", body=leave)])


def test_a_step_that_cannot_be_handed_over_is_a_failed_step(toy: Toy) -> None:
    class Refusing(ThreadClient):
        def submit(self, request: Any) -> Any:
            if request.name.startswith("b-"):
                raise RuntimeError("no room")
            return super().submit(request)

    steps = [toy.step("a"), toy.step("b"), toy.step("c")]
    with pytest.raises(StepsFailedError, match="RuntimeError: no room"):
        StepRunner(fray_client=Refusing(2)).run([*steps, toy.step("d", steps[1])])
    assert sorted(toy.ran) == ["a", "c"]


def test_a_value_that_cannot_be_kept_names_type_and_step_and_leaves_no_record(toy: Toy) -> None:
    step = toy.step("a", body=lambda: {1, 2})
    with pytest.raises(StepsFailedError, match=f"step {step.id} returned .*builtins.set"):
        StepRunner().run([step])
    assert not Path(step.output_path, ".record.json").exists()


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_max_concurrent_bounds_the_bodies(toy: Toy, limit: int) -> None:
    running, most, lock = 0, 0, threading.Lock()

    together = threading.Barrier(limit)

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(20)
        with lock:
            running -= 1

    StepRunner(limit, ThreadClient(32)).run([toy.step(f"s{place}", body=body) for place in range(3 * limit)])
    assert most == limit


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "8", None])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(ArgumentError, match="max_concurrent: expected a whole number of at least 1"):
        StepRunner(limit)


def test_the_longest_remaining_path_goes_first_and_ties_are_sorted(toy: Toy) -> None:
    first = toy.step("z1")
    steps = [toy.step("b"), toy.step("a"), toy.step("z3", toy.step("z2", first))]
    StepRunner(1).run(steps)
    assert toy.ran == ["z1", "z2", "a", "b", "z3"]


def test_context_variables_and_the_client_are_those_of_the_caller(toy: Toy) -> None:
    seen: list[Any] = []
    client = ThreadClient(2)

    def look_around() -> None:
        seen.append((COLOUR.get(), current_client()))

    token = COLOUR.set("red")
    try:
        StepRunner(fray_client=client).run(
            [toy.step("a", body=lambda: seen.append((COLOUR.get(), current_client())))]
        )
        with set_current_client(client):
            StepRunner().run([toy.step("b", body=lambda: seen.append((COLOUR.get(), current_client())))])
    finally:
        COLOUR.reset(token)
    assert seen == [("red", client), ("red", client)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("client", [None, ThreadClient(1)])
def test_a_step_may_run_a_graph_of_its_own(toy: Toy, client: ThreadClient | None) -> None:
    """With one slot, held by the outer step, the inner steps would wait for ever."""

    def nested() -> int:
        inner = toy.step("inner1")
        results = StepRunner(1, client).run([inner, toy.step("inner3", toy.step("inner2", inner))])
        return len(results)

    outer = toy.step("outer", body=nested)
    assert StepRunner(1, client).run([outer])[outer.id] == 3


def test_a_step_built_twice_runs_once(toy: Toy) -> None:
    def build() -> list[StepSpec]:
        shared = toy.step("shared")
        return [toy.step("left", shared), toy.step("right", shared)]

    StepRunner().run([build()[0], build()[1]])
    assert sorted(toy.ran) == ["left", "right", "shared"]


def test_no_steps_are_no_work() -> None:
    assert dict(StepRunner().run([])) == {}


def test_steps_may_come_from_a_generator(toy: Toy) -> None:
    assert len(StepRunner().run(toy.step(f"s{place}") for place in range(20))) == 20


def test_a_corrupt_record_stops_before_any_effect(toy: Toy, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    Path(diamond[1].output_path, ".record.json").write_text("{")
    with pytest.raises(ArtifactError, match=diamond[1].output_path):
        toy.ran_again(diamond)
    assert toy.ran == []


def test_the_reporter_reads_like_a_script(toy: Toy) -> None:
    events: list[Event] = []
    a = toy.step("a")
    b = toy.step("b", a)
    StepRunner().run([a])
    StepRunner(reporter=events.append).run([a, b])
    assert [type(event) for event in events] == [RunPlanned, StepEnded, StepStarted, StepEnded, RunEnded]
    assert events[0] == RunPlanned(cached=1, to_run=1)
    assert events[2] == StepStarted(b.id, "b")
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert [type(outcome) for outcome in ended.outcomes.values()] == [Cached, Done]


def test_changed_code_is_told_and_the_result_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def old(path: str) -> int:
        return 1

    def new(path: str) -> int:
        return 2

    events: list[Event] = []
    StepRunner().run([StepSpec("a", old, output_path_prefix=str(tmp_path))])
    changed = StepSpec("a", new, output_path_prefix=str(tmp_path))
    assert StepRunner(reporter=events.append).run([changed])[changed.id] == 1
    assert CodeChanged(changed.id, "a") in events
    with caplog.at_level(logging.WARNING):
        StepRunner().run([changed])
    assert "its code has changed" in caplog.text
    assert StepRunner().run([changed], force=["a"])[changed.id] == 2


def test_a_step_whose_record_vanishes_meanwhile_is_an_error(toy: Toy) -> None:
    step = toy.step("a")
    results = StepRunner().run([step])
    Path(step.output_path, ".record.json").unlink()
    with pytest.raises(ArtifactError, match="run again"):
        results[step.id]


def test_a_deep_chain_runs_in_order_and_is_looked_through_without_recursion(toy: Toy) -> None:
    chain = [toy.step("c0")]
    for place in range(1, 3000):
        chain.append(toy.step(f"c{place}", chain[-1]))
    StepRunner().run(chain[150:151])
    assert toy.ran == [each.name for each in chain[:151]]
    plan = look(gather(chain), frozenset())
    assert len(plan.records) == 151
    assert len(plan.to_run) == 2849


def test_each_record_is_read_once_however_many_edges_there_are(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking again for each edge makes a bipartite graph take hours to start."""
    sources = [toy.step(f"a{place}") for place in range(40)]
    sinks = [toy.step(f"b{place}", *sources) for place in range(40)]
    StepRunner().run(sinks)
    reads: list[str] = []

    def counting(path: str) -> Record | None:
        reads.append(path)
        return read_record(path)

    monkeypatch.setattr("treadle.execution.freshness.read_record", counting)
    StepRunner().run([*sources, *sinks])
    assert len(reads) == len(set(reads)) == 80


@pytest.mark.timeout(20)
def test_ctrl_c_starts_nothing_new_stops_the_running_and_frees_the_steps(toy: Toy) -> None:
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
def test_an_error_of_the_reporter_ends_the_run_and_goes_on(toy: Toy) -> None:
    def report(event: Event) -> None:
        if isinstance(event, StepStarted):
            raise RuntimeError("the terminal is gone")

    def body() -> None:
        while not stop_requested():
            time.sleep(0.001)

    with pytest.raises(RuntimeError, match="the terminal is gone"):
        StepRunner(1, reporter=report).run([toy.step("a", body=body), toy.step("b", body=body)])
    assert toy.ran == ["a"]


def test_the_reporter_is_called_in_the_thread_that_asked_for_the_run(toy: Toy) -> None:
    seen: set[int] = set()
    StepRunner(reporter=lambda _: seen.add(threading.get_ident())).run([toy.step("a"), toy.step("b")])
    assert seen == {threading.get_ident()}


def test_a_client_by_name_runs_the_steps(toy: Toy) -> None:
    with FrayClient() as client:
        step = toy.step("a", body=lambda: current_client() is client)
        assert StepRunner(fray_client=client).run([step])[step.id] is True


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
    toy: Toy, error: BaseException
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


def test_the_message_of_very_many_failures_stays_readable(toy: Toy) -> None:
    """A layer of failures above a layer of skips is a product; the outcomes have every culprit."""
    sources = [toy.step(f"a{place:02}") for place in range(30)]
    toy.fails = {each.name for each in sources}
    sink = toy.step("sink", *sources)
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([sink])
    assert str(caught.value).splitlines()[-1].endswith(" and 20 more")
    outcome = caught.value.results.outcomes[sink.id].outcome  # type: ignore[attr-defined]
    assert set(outcome.because) == {each.id for each in sources}


def test_outcomes_come_in_the_order_of_the_graph_whoever_ends_first(toy: Toy) -> None:
    gate = threading.Event()
    steps = [toy.step("a", body=lambda: gate.wait(20)), toy.step("b", body=gate.set), toy.step("c")]
    assert [*StepRunner(3).run(reversed(steps)).outcomes] == [each.id for each in steps]


def test_a_dependency_that_vanishes_meanwhile_is_never_read_as_nothing(toy: Toy) -> None:
    """A body that lists the files of a folder that is gone would give an empty result, and keep it."""
    a = toy.step("a")
    StepRunner().run([a])
    remove = toy.step("remove", body=lambda: shutil.rmtree(a.output_path))
    b = toy.step("b", a, remove)
    with pytest.raises(StepsFailedError, match=f"failed {b.id}: ArtifactError: .*run again to build it anew"):
        StepRunner().run([b])
    assert toy.ran_again([b]) == ["a", "b"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("client", [None, ThreadClient(1)])
def test_ctrl_c_reaches_the_runs_inside_steps(toy: Toy, client: ThreadClient | None) -> None:
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
    assert not Path(step.output_path, ".record.json").exists(), "half of it is not all of it"


def test_the_code_is_hashed_before_anything_runs(tmp_path: Path) -> None:
    """People edit a script while it runs: recorded is the code that ran, or drift goes unseen."""
    script, store = tmp_path / "edited.py", str(tmp_path / "store")
    script.write_text("def fn(path):\n    return 1\n")

    def load() -> StepSpec:
        space: dict[str, Any] = {}
        exec(compile(script.read_text(), script, "exec"), space)
        return StepSpec("late", space["fn"], [edit], output_path_prefix=store)

    def rewrite(path: str) -> None:
        script.write_text("def fn(path):\n    return 1 + 1\n")
        linecache.checkcache(str(script))

    edit = StepSpec("edit", rewrite, output_path_prefix=store)
    StepRunner().run([load()])
    events: list[Event] = []
    step = load()
    assert StepRunner(reporter=events.append).run([step])[step.id] == 1
    assert CodeChanged(step.id, "late") in events
