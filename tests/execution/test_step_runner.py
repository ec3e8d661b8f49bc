"""The runner: in order, once, as many at a time as allowed, and nothing that is done already."""

import contextvars
import linecache
import logging
import shutil
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import FileEntry
from treadle.artifacts.record import read_head
from treadle.artifacts.workplace import LocalWorkplace
from treadle.errors import ArgumentError, ArtifactError, UnknownNameError
from treadle.execution import (
    Event,
    RunEnded,
    RunPlanned,
    StepDrifted,
    StepEnded,
    StepRunner,
    StepSpec,
    StepStarted,
)
from treadle.execution.freshness import look
from treadle.execution.graph import gather
from treadle.fray import FrayClient, ThreadClient, current_client, set_current_client
from treadle.kernel import Cached, Done
from treadle.storage.ledger import Entry

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


@pytest.fixture
def diamond(toy: Any) -> list[StepSpec]:
    a = toy.step("a")
    b, c = toy.step("b", a), toy.step("c", a)
    return [a, b, c, toy.step("d", b, c)]


def test_results_by_step_id(toy: Any, diamond: list[StepSpec]) -> None:
    results = StepRunner().run(reversed(diamond))
    assert toy.ran[0] == "a"
    assert toy.ran[-1] == "d"
    assert dict(results) == {each.id: each.name for each in diamond}
    assert {type(each.outcome) for each in results.outcomes.values()} == {Done}


def test_a_warm_run_runs_nothing_and_gives_the_same(toy: Any, diamond: list[StepSpec]) -> None:
    first = dict(StepRunner().run(diamond))
    assert toy.ran_again(diamond) == []
    again = StepRunner().run(diamond)
    assert dict(again) == first
    assert {type(each.outcome) for each in again.outcomes.values()} == {Cached}
    assert all(each.started for each in again.outcomes.values())


@pytest.mark.parametrize(("gone", "again"), [("a", "abcd"), ("b", "bd"), ("c", "cd"), ("d", "d")])
def test_deleting_a_folder_reruns_that_step_and_what_depends_on_it(
    toy: Any, diamond: list[StepSpec], gone: str, again: str
) -> None:
    StepRunner().run(diamond)
    shutil.rmtree(next(each.output_path for each in diamond if each.name == gone))
    assert toy.ran_again(diamond) == list(again)
    assert toy.ran_again(diamond) == []


def test_a_missing_or_cut_file_is_not_done(toy: Any, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    Path(diamond[1].output_path, "out.txt").unlink()
    assert toy.ran_again(diamond) == ["b", "d"]
    Path(diamond[3].output_path, "out.txt").write_text("")
    assert toy.ran_again(diamond) == ["d"]


def test_the_ancestors_of_a_done_step_are_not_missed(toy: Any, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    toy.forget(diamond[0])
    assert toy.ran_again(diamond[3:]) == []
    toy.forget(diamond[3])
    assert toy.ran_again(diamond[3:]) == ["d"], "b and c are done, so a is not needed"


def test_force_reruns_a_step_and_what_depends_on_it(toy: Any, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    assert toy.ran_again(diamond, force=["b"]) == ["b", "d"]
    assert toy.ran_again(diamond[3:], force=diamond[2].id) == ["c", "d"]
    with pytest.raises(UnknownNameError, match=r"unknown step 'x' \(known: a, b, c, d\)"):
        StepRunner().run(diamond, force=["x"])


def test_a_rebuild_elsewhere_is_noticed(toy: Any, diamond: list[StepSpec]) -> None:
    """Dependents stand for the build of the dependency that they were made from, not for any."""
    StepRunner().run(diamond)
    StepRunner().run(diamond[:1], force=["a"])
    assert toy.ran_again(diamond) == ["b", "c", "d"]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_max_concurrent_bounds_the_bodies(toy: Any, limit: int) -> None:
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


def test_the_longest_remaining_path_goes_first_and_ties_are_sorted(toy: Any) -> None:
    first = toy.step("z1")
    steps = [toy.step("b"), toy.step("a"), toy.step("z3", toy.step("z2", first))]
    StepRunner(1).run(steps)
    assert toy.ran == ["z1", "z2", "a", "b", "z3"]


def test_context_variables_and_the_client_are_those_of_the_caller(toy: Any) -> None:
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
def test_a_step_may_run_a_graph_of_its_own(toy: Any, client: ThreadClient | None) -> None:
    """With one slot, held by the outer step, the inner steps would wait for ever."""

    def nested() -> int:
        inner = toy.step("inner1")
        results = StepRunner(1, client).run([inner, toy.step("inner3", toy.step("inner2", inner))])
        return len(results)

    outer = toy.step("outer", body=nested)
    assert StepRunner(1, client).run([outer])[outer.id] == 3


def test_a_step_built_twice_runs_once(toy: Any) -> None:
    def build() -> list[StepSpec]:
        shared = toy.step("shared")
        return [toy.step("left", shared), toy.step("right", shared)]

    StepRunner().run([build()[0], build()[1]])
    assert sorted(toy.ran) == ["left", "right", "shared"]


def test_no_steps_are_no_work() -> None:
    assert dict(StepRunner().run([])) == {}


def test_steps_may_come_from_a_generator(toy: Any) -> None:
    assert len(StepRunner().run(toy.step(f"s{place}") for place in range(20))) == 20


def test_a_corrupt_record_stops_before_any_effect(toy: Any, diamond: list[StepSpec]) -> None:
    StepRunner().run(diamond)
    with sqlite3.connect(toy.store / ".treadle" / "ledger.db") as base:
        base.execute("UPDATE builds SET head = '{' WHERE place LIKE 'b/%'")
    with pytest.raises(ArtifactError, match=f"b/{diamond[1].hash_id}"):
        toy.ran_again(diamond)
    assert toy.ran == []


def test_the_reporter_reads_like_a_script(toy: Any) -> None:
    events: list[Event] = []
    a = toy.step("a")
    b = toy.step("b", a)
    StepRunner().run([a])
    StepRunner(reporter=events.append).run([a, b])
    assert [type(event) for event in events] == [RunPlanned, StepEnded, StepStarted, StepEnded, RunEnded]
    assert isinstance(events[0], RunPlanned)
    assert (events[0].cached, events[0].to_run, events[0].total) == (1, 1, 2)
    assert events[2] == StepStarted(b.id, "b")
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.counts == {Cached: 1, Done: 1}


def test_changed_code_is_told_and_the_result_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def old(path: str) -> int:
        return 1

    def new(path: str) -> int:
        return 2

    events: list[Event] = []
    StepRunner().run([StepSpec("a", old, output_path_prefix=str(tmp_path))])
    changed = StepSpec("a", new, output_path_prefix=str(tmp_path))
    assert StepRunner(reporter=events.append).run([changed])[changed.id] == 1
    assert StepDrifted(changed.id, "a", "the code of its function has changed") in events
    with caplog.at_level(logging.WARNING):
        StepRunner().run([changed])
    assert "the code of its function has changed since it was built" in caplog.text
    assert StepRunner().run([changed], force=["a"])[changed.id] == 2


def test_a_step_whose_record_vanishes_meanwhile_is_an_error(toy: Any) -> None:
    step = toy.step("a")
    results = StepRunner().run([step])
    toy.forget(step)
    with pytest.raises(ArtifactError, match="run again"):
        results[step.id]


def test_a_deep_chain_runs_in_order_and_is_looked_through_without_recursion(toy: Any) -> None:
    chain = [toy.step("c0")]
    for place in range(1, 3000):
        chain.append(toy.step(f"c{place}", chain[-1]))
    StepRunner().run(chain[150:151])
    assert toy.ran == [each.name for each in chain[:151]]
    plan = look(gather(chain), frozenset())
    assert len(plan.done) == 151
    assert len(plan.reasons) == 2849


def test_each_record_is_read_once_however_many_edges_there_are(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking again for each edge makes a bipartite graph take hours to start."""
    sources = [toy.step(f"a{place}") for place in range(40)]
    sinks = [toy.step(f"b{place}", *sources) for place in range(40)]
    StepRunner().run(sinks)
    reads: list[str] = []
    looks: list[str] = []
    stand = LocalWorkplace.stand

    def counting_read(ledger: str, entry: Entry) -> Any:
        reads.append(entry.place)
        return read_head(ledger, entry)

    def counting_stand(self: LocalWorkplace, folder: str, files: Iterable[FileEntry]) -> bool:
        looks.append(folder)
        return stand(self, folder, files)

    monkeypatch.setattr("treadle.artifacts.store.read_head", counting_read)
    monkeypatch.setattr(LocalWorkplace, "stand", counting_stand)
    StepRunner().run([*sources, *sinks])
    assert len(reads) == len(set(reads)) == 80
    assert len(looks) == len(set(looks)) == 80


def test_the_reporter_is_called_in_the_thread_that_asked_for_the_run(toy: Any) -> None:
    seen: set[int] = set()
    StepRunner(reporter=lambda _: seen.add(threading.get_ident())).run([toy.step("a"), toy.step("b")])
    assert seen == {threading.get_ident()}


def test_a_client_by_name_runs_the_steps(toy: Any) -> None:
    with FrayClient() as client:
        step = toy.step("a", body=lambda: current_client() is client)
        assert StepRunner(fray_client=client).run([step])[step.id] is True


def test_outcomes_come_in_the_order_of_the_graph_whoever_ends_first(toy: Any) -> None:
    gate = threading.Event()
    steps = [toy.step("a", body=lambda: gate.wait(20)), toy.step("b", body=gate.set), toy.step("c")]
    assert [*StepRunner(3).run([*reversed(steps)]).outcomes] == [each.id for each in steps]


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
    assert StepDrifted(step.id, "late", "the code of its function has changed") in events
