"""One attempt at a step: one owner, all or nothing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import Record, open_store
from treadle.errors import ArtifactError, StepError, StepsFailedError
from treadle.execution import Event, StepRunner, StepSpec, StepWaiting
from treadle.execution.running.execute import attempt
from treadle.execution.running.task import Served, Task
from treadle.fray import JobRequest, ThreadClient
from treadle.kernel import Cached, Done
from treadle.storage.ledger import Claim, Held


def store_of(step: StepSpec) -> Any:
    return open_store(str(step.output_path_prefix))


def record(step: StepSpec) -> Record | None:
    found: Record | None = store_of(step).record(step.output_path)
    return found


def tried(step: StepSpec, builds: Mapping[str, str] | None = None, **options: Any) -> Served:
    """One attempt, which raises what it raises."""
    result = attempt(Task(step, builds or {}, "run", **options))
    assert not isinstance(result, Held)
    if isinstance(result, Served):
        return result
    raise result.outcome.error


def half(path: str) -> None:
    Path(path, "half.txt").touch()
    raise ValueError("in the middle")


def test_a_body_that_raises_leaves_nothing_but_a_note(tmp_path: Path) -> None:
    step = StepSpec("a", half, output_path_prefix=str(tmp_path))
    with pytest.raises(ValueError, match="in the middle"):
        tried(step)
    assert record(step) is None
    assert not Path(step.output_path).exists()
    assert not list(tmp_path.glob(".treadle/work/*")), "what nobody will use is gone"
    [note] = store_of(step).ledger.attempts()
    assert (note.outcome, note.step_id) == ("failed", step.id)
    line = half.__code__.co_firstlineno + 2
    assert note.reason == f"ValueError: in the middle (test_execute.py:{line} in half)"


def test_the_record_tells_what_was_built_and_from_what(tmp_path: Path) -> None:
    def fill(path: str) -> tuple[int, str]:
        Path(path, "sub").mkdir()
        Path(path, "sub", "b.txt").write_text("abc")
        Path(path, "a.txt").touch()
        return 1, "x"

    step = StepSpec("a", fill, hash_attrs={"n": 1}, output_path_prefix=str(tmp_path))
    served = tried(step, {"dep-1": "build-1"})
    assert isinstance(served.outcome, Done)
    found = record(step)
    assert found is not None
    assert (found.number, found.head) == (1, served.head)
    assert [(each.path, each.bytes) for each in found.head.files] == [("a.txt", 0), ("sub/b.txt", 3)]
    checksum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert found.head.files[1].checksum == f"sha256:{checksum}"
    assert found.head.deps == {"dep-1": "build-1"}
    assert (found.head.step_id, found.head.fingerprint, found.head.name) == (step.id, step.hash_id, "a")
    assert found.body.config == step.config
    assert store_of(step).load_value(step.output_path) == (1, "x")


def test_a_done_step_is_looked_at_again_under_the_lease(tmp_path: Path) -> None:
    """Somebody else may have built it between the plan and the claim."""
    step = StepSpec("a", lambda path: None, output_path_prefix=str(tmp_path))
    first = tried(step, {"dep": "1"}).head
    again = tried(step, {"dep": "1"})
    assert isinstance(again.outcome, Cached)
    assert again.head == first
    assert tried(step, {"dep": "2"}).head.build != first.build, "the dependency was built anew"
    assert isinstance(tried(step, {"dep": "2"}, forced=True).outcome, Done)
    assert isinstance(tried(step, {"dep": "2"}, known=3).outcome, Done), "what the plan did not want"


def test_a_killed_replacement_cannot_leave_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The former record goes first: a folder that is half replaced must not look done."""
    step = StepSpec("a", lambda path: Path(path, "x").touch(), output_path_prefix=str(tmp_path))
    tried(step)

    def die(*_: object) -> None:
        raise OSError("killed")

    monkeypatch.setattr(Path, "rename", die)
    with pytest.raises(OSError, match="killed"):
        tried(step, forced=True)
    monkeypatch.undo()
    assert record(step) is None
    assert isinstance(tried(step).outcome, Done)


def test_a_file_that_cannot_be_written_safely_is_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full only at the sync must not leave a record without the artifact."""
    step = StepSpec("a", lambda path: Path(path, "x").touch(), output_path_prefix=str(tmp_path))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tried(step)
    assert record(step) is None
    assert not Path(step.output_path).exists()
    monkeypatch.undo()
    assert isinstance(tried(step).outcome, Done)


def test_what_is_no_value_names_step_and_type(tmp_path: Path) -> None:
    step = StepSpec("a", lambda path: object(), output_path_prefix=str(tmp_path))
    with pytest.raises(ArtifactError, match=f"step {step.id} returned what cannot .*builtins.object"):
        tried(step)
    [note] = store_of(step).ledger.attempts()
    assert note.outcome == "failed", "what asks for the failed steps finds it"


def held(step: StepSpec) -> Claim:
    """Somebody else is at work on the step."""
    claim = store_of(step).ledger.claim(store_of(step).place(step.output_path), lambda: None, "other")
    assert isinstance(claim, Claim)
    return claim


@pytest.mark.timeout(20)
def test_whoever_waits_for_another_owner_can_be_stopped(tmp_path: Path) -> None:
    ran: list[str] = []
    step = StepSpec("a", ran.append, output_path_prefix=str(tmp_path))
    claim = held(step)

    def report(event: Event) -> None:
        if isinstance(event, StepWaiting):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StepRunner(reporter=report).run([step])
    assert not ran
    store_of(step).ledger.release(claim)


@pytest.mark.timeout(20)
def test_whoever_waits_for_another_owner_holds_no_slot(tmp_path: Path) -> None:
    """That owner may need the slot to come to its end."""
    order: list[str] = []
    a = StepSpec("a", lambda path: order.append("a"), output_path_prefix=str(tmp_path))
    claim = held(a)

    def free(path: str) -> None:
        order.append("b")
        store_of(a).ledger.release(claim)

    b = StepSpec("b", free, output_path_prefix=str(tmp_path))
    events: list[Event] = []
    with ThreadClient(1) as client:
        StepRunner(1, client, reporter=events.append).run([a, b])
    assert order == ["b", "a"]
    [waiting] = [event for event in events if isinstance(event, StepWaiting)]
    assert (waiting.id, waiting.owner.run, waiting.owner.pid) == (a.id, "other", os.getpid())


def test_twenty_threads_compute_one_step_once(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def fn(path: str) -> None:
        with log.open("a") as file:
            file.write("x")

    step = StepSpec("a", fn, output_path_prefix=str(tmp_path))
    with ThreadClient(20) as client:
        jobs = [client.submit(JobRequest(str(n), lambda: StepRunner().run([step]))) for n in range(20)]
        for job in jobs:
            job.result()
    assert log.read_text() == "x"


def replace_by_a_file(path: str) -> None:
    shutil.rmtree(path)
    Path(path).touch()


@pytest.mark.parametrize("body", [shutil.rmtree, replace_by_a_file])
def test_a_step_that_removes_its_folder_is_told_so_and_can_run_again(tmp_path: Path, body: Any) -> None:
    step = StepSpec("a", body, output_path_prefix=str(tmp_path))
    for _ in range(2):
        with pytest.raises(StepError, match="the output folder is gone after the step ran") as caught:
            tried(step)
        assert step.id in caught.value.__notes__[0]
    assert not list(tmp_path.glob(".treadle/work/*"))


def test_a_folder_that_is_a_link_is_replaced_and_what_it_points_to_is_kept(tmp_path: Path) -> None:
    step = StepSpec("a", lambda path: Path(path, "x").touch(), output_path_prefix=str(tmp_path / "store"))
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    Path(step.output_path).parent.mkdir(parents=True)
    Path(step.output_path).symlink_to(other)
    tried(step)
    assert not Path(step.output_path).is_symlink()
    assert (Path(step.output_path) / "x").exists()
    assert (other / "kept").exists()


def test_a_place_that_holds_what_no_step_has_made_is_not_replaced(tmp_path: Path) -> None:
    """Whoever names a folder full of data by hand must not lose it."""
    data = tmp_path / "data"
    data.mkdir()
    step = StepSpec(
        "a", lambda path: None, output_path_prefix=str(tmp_path / "store"), override_output_path=str(data)
    )
    (data / "mine").touch()
    for _ in range(2):
        with pytest.raises(StepError, match="override_output_path: expected a new or empty folder"):
            tried(step)
    assert (data / "mine").exists()
    (data / "mine").unlink()
    tried(step)
    data.mkdir(exist_ok=True)
    (data / "mine").touch()
    store_of(step).forget(step.output_path)
    assert isinstance(tried(step).outcome, Done), "it is the step's own folder now"


DIE = """
import os, sys
from pathlib import Path
from treadle.artifacts import open_store

store, place = sys.argv[1:]
open_store(store).ledger.claim(place, lambda: None)
Path(place).mkdir()
Path(place, "half").touch()
os._exit(0)
"""


def test_a_place_is_free_again_when_the_process_that_filled_it_died_before_its_commit(tmp_path: Path) -> None:
    """Else what it left looks for ever like data of a person."""
    fails = [True, False]

    def body(path: str) -> None:
        if fails.pop(0):
            raise ValueError("not yet")

    place, store = str(tmp_path / "data"), str(tmp_path / "store")
    step = StepSpec("a", body, output_path_prefix=store, override_output_path=place)
    subprocess.run([sys.executable, "-c", DIE, store, place], check=True)
    with pytest.raises(ValueError, match="not yet"):
        tried(step)
    assert isinstance(tried(step).outcome, Done)


@pytest.mark.timeout(20)
def test_a_step_that_runs_itself_is_refused(tmp_path: Path) -> None:
    """It would wait for its own lease for ever."""
    steps: list[StepSpec] = []
    middle = StepSpec(
        "middle", lambda path: StepRunner().run(steps).outcomes and None, output_path_prefix=str(tmp_path)
    )
    steps.append(
        StepSpec("a", lambda path: StepRunner().run([middle]) and None, output_path_prefix=str(tmp_path))
    )
    with pytest.raises(StepsFailedError, match="run from inside itself"):
        StepRunner().run(steps)
