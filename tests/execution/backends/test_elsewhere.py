"""Steps in other processes: what they see, what is refused, what they print, how they end when they must."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.execution.backends import bodies
from tests.execution.backends.experiment import traces
from treadle import Retry, StepSpec, plan, run
from treadle.artifacts import open_store
from treadle.artifacts.logs import read_log
from treadle.errors import (
    ArgumentError,
    NotSendableError,
    RemoteError,
    StepsFailedError,
    StepTimeoutError,
    WorkerLostError,
)
from treadle.execution import Event, Results, StepEnded, StepRetrying, StepStarted
from treadle.fray import Client, JobRequest, ResourceConfig, set_current_client
from treadle.fray.processes import ProcessClient
from treadle.kernel import Done
from treadle.storage.ledger.process import is_gone

pytestmark = pytest.mark.timeout(180)


def failures(caught: pytest.ExceptionInfo[StepsFailedError]) -> list[Exception]:
    return list(caught.value.exceptions)


def attempts(store: Path) -> list[tuple[str, str]]:
    notes = open_store(str(store)).ledger.attempts()
    return [(note.name, note.outcome) for note in reversed(notes)]


def live_owners(store: Path) -> list[int]:
    owners = dict(open_store(str(store)).ledger.leases()).values()
    return [owner.pid for owner in owners if not is_gone(owner)]


def leases(store: Path) -> list[str]:
    return [place for place, _ in open_store(str(store)).ledger.leases()]


# What steps see


def test_a_step_sees_the_client_of_the_run_and_what_travels(client: Client, tmp_path: Path) -> None:
    handle = bodies.look_around()
    with bodies.TENANT.use("blue"):
        found = run(handle, prefix=tmp_path, fray_client=client)[handle.id]
    assert found["tenant"] == found["of a job"] == "blue"
    assert found["shares memory"] is client.shares_memory
    assert (found["pid"] == os.getpid()) is client.shares_memory


def test_the_current_client_is_where_steps_run(elsewhere: Client, tmp_path: Path) -> None:
    handle = bodies.look_around()
    with set_current_client(elsewhere), bodies.TENANT.use("red"):
        assert run(handle, prefix=tmp_path)[handle.id]["pid"] != os.getpid()


def test_a_configured_cluster_is_where_steps_run_of_those_who_name_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_CLUSTER", "processes")
    handle = bodies.look_around()
    with bodies.TENANT.use("green"):
        assert run(handle, prefix=tmp_path)[handle.id]["pid"] != os.getpid()
        again = bodies.look_around().named("again")
        monkeypatch.setenv("TREADLE_CLUSTER", "local")
        assert run(again, prefix=tmp_path)[again.id]["pid"] == os.getpid()


def test_runs_inside_steps_go_as_deep_as_they_like(client: Client, tmp_path: Path) -> None:
    handle = bodies.countdown(6)  # there are four workers
    assert run(handle, prefix=tmp_path, fray_client=client, max_concurrent=1)[handle.id] == 6


def test_a_step_that_is_run_from_inside_itself_is_refused(client: Client, tmp_path: Path) -> None:
    with pytest.raises(StepsFailedError, match="is run from inside itself, and would wait for itself"):
        run(bodies.ouroboros(), prefix=tmp_path, fray_client=client)


def test_two_steps_that_run_each_other_are_refused(client: Client, tmp_path: Path, folder: Path) -> None:
    one, two = bodies.meet("one", "two", str(folder)), bodies.meet("two", "one", str(folder))
    with pytest.raises(StepsFailedError, match="each would wait for the other for ever"):
        run(one, two, prefix=tmp_path, fray_client=client)
    assert not dict(open_store(str(tmp_path)).ledger.leases()), "nobody waits for anything any more"


# What is refused before anything runs


def test_a_store_in_memory_is_refused(elsewhere: Client) -> None:
    handle = bodies.talk()
    with pytest.raises(ArgumentError, match=rf"step {handle.id}: .* got memory://refused .* run on threads"):
        run(handle, prefix="memory://refused", fray_client=elsewhere)


@pytest.mark.parametrize("streamed", [False, True])
def test_what_cannot_be_sent_is_refused_with_step_and_object(
    elsewhere: Client, tmp_path: Path, folder: Path, streamed: bool
) -> None:
    lock = threading.Lock()
    first = bodies.die(0, "", str(folder))
    last = StepSpec("last", lambda path: lock, [], output_path_prefix=str(tmp_path))
    with pytest.raises(NotSendableError, match=f"step {last.id} cannot be sent") as caught:
        run(*([iter([first, last])] if streamed else [first, last]), prefix=tmp_path, fray_client=elsewhere)
    assert "lock" in str(caught.value)
    assert traces(folder) == {}, "nothing ran"
    assert attempts(tmp_path) == [] or streamed


def test_a_step_that_is_done_need_not_be_sendable(elsewhere: Client, tmp_path: Path) -> None:
    lock = threading.Lock()
    spec = StepSpec("here", lambda path: lock.locked(), output_path_prefix=str(tmp_path))
    run(spec)
    assert run(spec, fray_client=elsewhere)[spec.id] is False


def test_resources_that_are_not_there_are_refused(elsewhere: Client, tmp_path: Path) -> None:
    handle = bodies.talk().with_options(resources=ResourceConfig(cpu=10_000))
    with pytest.raises(ArgumentError, match=rf"step {handle.id}: resources: cpu: 10,000 asked for"):
        run(handle, prefix=tmp_path, fray_client=elsewhere)


# What steps print


def test_what_a_step_prints_is_in_its_log_and_on_the_terminal(
    client: Client, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    handle = bodies.talk()
    run(handle, prefix=tmp_path, fray_client=client)
    store = open_store(str(tmp_path))
    lines = read_log(store.prefix, next(store.ledger.places()).place).splitlines()
    told = {line.split(" ", 1)[1] for line in lines}
    assert told == {
        "talk#1 stdout | to stdout",
        "talk#1 stderr | to stderr",
        "talk#1 log | WARNING bodies: to the log",
        "talk#1 stdout | unfinished",
    }
    out, err = seen(capfd, lambda out, err: "talk | unfinished" in out and "talk | to stderr" in err)
    assert "talk | to stdout" in out
    assert "talk | to stderr" in err


def seen(
    capfd: pytest.CaptureFixture[str], enough: Callable[[str, str], bool], patience: float = 30.0
) -> tuple[str, str]:
    """What was printed: lines of other processes come a moment after their job has ended."""
    out = err = ""
    late = time.monotonic() + patience
    while not enough(out, err) and time.monotonic() < late:
        more = capfd.readouterr()
        out, err = out + more.out, err + more.err
        time.sleep(0.01)
    return out, err


def test_the_traceback_of_a_failure_is_in_its_log(client: Client, tmp_path: Path) -> None:
    with pytest.raises(StepsFailedError, match=r"ValueError: no further \(bodies.py:\d+ in talk_and_fail\)"):
        run(bodies.talk_and_fail(), prefix=tmp_path, fray_client=client)
    store = open_store(str(tmp_path))
    log = read_log(store.prefix, store.ledger.attempts()[0].place)
    assert "stdout | so far so good" in log
    assert "error | ValueError: no further" in log


# Workers that are lost


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_lost_worker_is_no_fault_of_the_step(
    elsewhere: Client, tmp_path: Path, folder: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its lease does not keep the next attempt waiting: it would be an hour."""
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", "3600")
    handle = bodies.die(2, how, str(folder))
    told: list[StepRetrying] = []

    def keep(event: Event) -> None:
        if isinstance(event, StepRetrying):
            told.append(event)

    results = run(handle, prefix=tmp_path, fray_client=elsewhere, reporter=keep)
    assert [each.told for each in told] == ["lost, 1 of 2 times", "lost, 2 of 2 times"]
    assert results[handle.id] == 3
    assert results.outcomes[handle.id].attempts == 1
    assert attempts(tmp_path) == [("die", "lost"), ("die", "lost"), ("die", "done")]


def test_a_step_that_kills_every_worker_fails_when_its_losses_are_used_up(
    elsewhere: Client, tmp_path: Path, folder: Path
) -> None:
    with pytest.raises(StepsFailedError, match="die") as caught:
        run(bodies.die(9, "kill", str(folder)), prefix=tmp_path, fray_client=elsewhere)
    [error] = failures(caught)
    assert isinstance(error, WorkerLostError)
    assert "3 workers were lost under it, and Retry(losses=2) grants no more" in str(error)
    assert traces(folder) == {"die": 3}
    assert attempts(tmp_path) == [("die", "lost"), ("die", "lost"), ("die", "failed")]
    assert leases(tmp_path) == [], "not even those of the dead"


def test_what_a_killed_body_printed_is_kept_in_an_object_store(s3: str, tmp_path: Path) -> None:
    """Objects cannot grow, so the lines are on the disk of the worker when it dies."""
    store = f"{s3}/{tmp_path.name}"
    with ProcessClient(1) as client, pytest.raises(StepsFailedError):
        run(bodies.die(9, "kill", str(tmp_path)), prefix=store, fray_client=client)
    [place] = [note.place for note in open_store(store).ledger.attempts(limit=1)]
    said = [line.partition(" | ")[2] for line in read_log(store, place).splitlines()]
    assert said[::2] == [f"about to die for the {n}. time" for n in (1, 2, 3)]
    assert all("killed by SIGKILL" in line for line in said[1::2]), "and how it ended is there too"


# Steps that are ended

BODIES = [bodies.never_look, bodies.swallow, bodies.obey, bodies.give_half]


@pytest.mark.parametrize("body", BODIES, ids=lambda each: each.name)
def test_a_timeout_ends_the_body_whatever_it_does(
    elsewhere: Client, tmp_path: Path, folder: Path, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", "3600")
    handle = body(str(folder))
    with pytest.raises(StepsFailedError, match=r"longer than its timeout of 0\.5 s") as caught:
        run(handle, prefix=tmp_path, fray_client=elsewhere)
    [error] = failures(caught)
    assert isinstance(error, StepTimeoutError)
    assert live_owners(tmp_path) == [], "the step is free at once"
    assert attempts(tmp_path)[-1] == (body.name, "failed")
    pids = [int(name.rpartition("-")[2]) for name in traces(folder) if name[-1].isdigit()]
    assert not [pid for pid in pids if body is bodies.swallow and is_there(pid)]


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("body", BODIES, ids=lambda each: each.name)
def test_an_interrupted_run_ends_its_bodies_and_says_so(
    elsewhere: Client, tmp_path: Path, folder: Path, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_LEASE_SECONDS", "3600")
    handle = body(str(folder)).with_options(timeout=600)

    ends: list[StepEnded] = []

    def interrupt(event: Event) -> None:
        if isinstance(event, StepEnded):
            ends.append(event)
        if isinstance(event, StepStarted):
            late = time.monotonic() + 60
            while not traces(folder):
                assert time.monotonic() < late
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(handle, prefix=tmp_path / "store", fray_client=elsewhere, reporter=interrupt)
    assert attempts(tmp_path / "store") == [(body.name, "cancelled")]
    [note] = open_store(str(tmp_path / "store")).ledger.attempts()
    assert "before it began" not in note.reason
    assert [each.cancelled for each in ends] == [True]
    [told] = open_store(str(tmp_path / "store")).ledger.runs()
    assert {word: count for word, count in told.counts.items() if count} == {"cancelled": 1}
    assert live_owners(tmp_path / "store") == [], "the step is free at once"
    assert not list((tmp_path / "store").glob(".treadle/work/*"))


def test_a_step_that_timed_out_is_tried_again(elsewhere: Client, tmp_path: Path, folder: Path) -> None:
    handle = bodies.never_look(str(folder)).with_options(retry=Retry(attempts=2, delay=0.01))
    with pytest.raises(StepsFailedError, match="longer than its timeout"):
        run(handle, prefix=tmp_path, fray_client=elsewhere)
    assert sum(traces(folder).values()) == 2
    notes = open_store(str(tmp_path)).ledger.attempts()
    assert [note.attempt for note in notes if "longer than its timeout" in note.reason] == [2, 1]
    assert live_owners(tmp_path) == []


def test_after_a_failure_nothing_begins_that_waits_for_a_worker(tmp_path: Path, folder: Path) -> None:
    """One begins before the run hears of the failure, and no other."""
    handles = [bodies.fail(n, str(folder)) for n in range(4)]
    store, seen = tmp_path / "store", tmp_path / "seen"

    def tell(event: Event) -> None:
        if isinstance(event, StepEnded):
            seen.touch()

    with ProcessClient(1) as client, pytest.raises(StepsFailedError) as caught:
        run(*handles, prefix=store, fray_client=client, on_failure="stop", reporter=tell)
    assert len(failures(caught)) == len(traces(folder)) <= 2
    assert Counter(outcome for _, outcome in attempts(store))["skipped"] == 4 - len(traces(folder))


def test_a_step_that_was_late_and_saw_it_is_not_done_with_half(
    client: Client, tmp_path: Path, folder: Path
) -> None:
    """What it returns would be served for ever."""
    with pytest.raises(StepsFailedError, match=r"longer than its timeout of 0\.5 s") as caught:
        run(bodies.give_half(str(folder)), prefix=tmp_path, fray_client=client)
    [error] = failures(caught)
    assert isinstance(error, StepTimeoutError)
    assert "returned after it saw that it was to stop" in str(error.__cause__)
    assert list(open_store(str(tmp_path)).ledger.places()) == []


def test_no_more_steps_are_handed_over_than_there_are_workers(client: Client, tmp_path: Path) -> None:
    """What waits in a queue is not under way, and its clock does not run."""
    at_once: list[int] = []
    under_way: set[str] = set()

    def count(event: Event) -> None:
        if isinstance(event, StepStarted):
            under_way.add(event.id)
        elif isinstance(event, StepEnded):
            under_way.discard(event.id)
        at_once.append(len(under_way))

    handles = [bodies.rest(n, 0.05) for n in range(4 * client.max_workers)]
    run(*handles, prefix=tmp_path, fray_client=client, max_concurrent=1000, reporter=count)
    assert max(at_once) == client.max_workers
    made = plan(*handles, prefix=tmp_path, fray_client=client, max_concurrent=1000)
    assert made.at_once == client.max_workers


def test_an_attempt_that_is_ended_by_force_is_noted_with_its_time(
    elsewhere: Client, tmp_path: Path, folder: Path
) -> None:
    handle = bodies.swallow(str(folder)).with_options(retry=Retry(attempts=2, delay=0.01))
    with pytest.raises(StepsFailedError, match="longer than its timeout") as caught:
        run(handle, prefix=tmp_path, fray_client=elsewhere)
    notes = open_store(str(tmp_path)).ledger.attempts()
    assert [(note.attempt, note.outcome) for note in notes] == [(2, "failed"), (1, "failed")]
    assert all(note.seconds >= 0.5 for note in notes)
    results = caught.value.results
    assert isinstance(results, Results)
    assert results.outcomes[handle.id].seconds >= 0.5
    assert leases(tmp_path) == []


def test_the_time_of_a_step_begins_when_its_body_does(tmp_path: Path) -> None:
    """With one worker, the second has used up most of its timeout before it begins."""
    handles = [bodies.rest(n, 2.0).with_options(timeout=3.0) for n in range(2)]
    with ProcessClient(1, grace=0.1) as client:
        results = run(*handles, prefix=tmp_path, fray_client=client)
    assert results.counts[Done] == 2


def test_an_error_whose_class_is_unknown_here_is_told_in_words(elsewhere: Client, tmp_path: Path) -> None:
    def fn(path: str) -> None:
        class HomelessError(Exception):
            def __reduce__(self) -> tuple[object, ...]:
                raise TypeError("not to be sent")

        raise HomelessError("far away")

    spec = StepSpec("a", fn, output_path_prefix=str(tmp_path))
    with pytest.raises(
        StepsFailedError, match=r"RemoteError: HomelessError: far away \(test_elsewhere.py:"
    ) as caught:
        run(spec, fray_client=elsewhere)
    [error] = failures(caught)
    assert isinstance(error, RemoteError)
    assert error.kind == "HomelessError"


def test_a_client_goes_on_after_all_that(elsewhere: Client) -> None:
    assert elsewhere.submit(JobRequest("pid", os.getpid)).result(60) != os.getpid()
