"""One step, one owner, all or nothing: also when processes race or die."""

import contextvars
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import read_record
from treadle.errors import ArtifactError, StepError, StepsFailedError
from treadle.execution import StepRunner, StepSpec, load_value
from treadle.execution.execute import execute
from treadle.execution.lease import lease
from treadle.fray import JobRequest, JobStatus, ThreadClient
from treadle.kernel import Cached, Done

SCRIPT = """
import os, sys, time
from pathlib import Path
from treadle import StepRunner, StepSpec

store, log, mode = sys.argv[1:]

def body(name):
    def fn(path):
        assert os.listdir(path) == [], os.listdir(path)
        with open(log, "a") as file:
            file.write(f"{name}\\n")
        Path(path, "half.txt").write_text("half")
        if name == "b" and mode == "exit":
            os._exit(9)
        if name == "b" and mode == "hang":
            Path(store, "hanging").touch()
            time.sleep(60)
        time.sleep(0.02)
        Path(path, "whole.txt").write_text("whole")
        return name
    return fn

def spec(name, *deps):
    return StepSpec(name, body(name), deps, output_path_prefix=store)

a = spec("a")
b = spec("b", a)
c, d = spec("c", a), spec("d", b)
fan = [spec(f"f{n}", b, c) for n in range(6)]
StepRunner(4).run([d, c, *fan])
"""
NAMES = sorted(["a", "b", "c", "d", *(f"f{n}" for n in range(6))])


class Project:
    def __init__(self, folder: Path) -> None:
        self.script, self.store, self.log = folder / "script.py", folder / "store", folder / "log.txt"
        self.script.write_text(SCRIPT)
        self.store.mkdir()

    def start(self, mode: str = "") -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, self.script, self.store, self.log, mode])

    def ran(self) -> list[str]:
        return sorted(self.log.read_text().split())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_body_that_kills_its_process_is_done_again_in_a_clean_folder(project: Project) -> None:
    """A half-written folder looks like a done one to whoever only asks whether it exists."""
    assert project.start("exit").wait() == 9
    assert list(project.store.glob("b/*/half.txt"))
    assert not list(project.store.glob("b/*/.record.json"))
    assert project.start().wait() == 0
    assert project.ran().count("b") == 2
    assert project.ran().count("a") == 1
    assert project.start("exit").wait() == 0, "all is done, so nothing runs"


def test_kill_9_leaves_no_lock_and_no_record(project: Project) -> None:
    process = project.start("hang")
    while not (project.store / "hanging").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert project.start().wait(30) == 0
    assert project.ran().count("b") == 2


def test_two_processes_on_one_store_compute_each_step_once(project: Project) -> None:
    both = [project.start(), project.start()]
    assert [process.wait() for process in both] == [0, 0]
    assert project.ran() == NAMES


def half(path: str) -> None:
    Path(path, "half.txt").touch()
    raise ValueError("in the middle")


def test_a_body_that_raises_leaves_no_record(tmp_path: Path) -> None:
    step = StepSpec("a", half, output_path_prefix=str(tmp_path))
    with pytest.raises(ValueError, match="in the middle"):
        execute(step, {})
    assert read_record(step.output_path) is None
    assert Path(step.output_path, "half.txt").exists(), "it stays to be looked at"


def test_the_record_tells_what_was_built_and_from_what(tmp_path: Path) -> None:
    def fill(path: str) -> tuple[int, str]:
        Path(path, "sub").mkdir()
        Path(path, "sub", "b.txt").write_text("abc")
        Path(path, "a.txt").touch()
        return 1, "x"

    step = StepSpec("a", fill, hash_attrs={"n": 1}, output_path_prefix=str(tmp_path))
    outcome, record = execute(step, {"dep-1": "build-1"})
    assert isinstance(outcome, Done)
    assert read_record(step.output_path) == record
    assert [(each.path, each.bytes) for each in record.files] == [("a.txt", 0), ("sub/b.txt", 3)]
    assert record.files[1].sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert record.deps == {"dep-1": "build-1"}
    assert (record.step_id, record.fingerprint, record.name) == (step.id, step.hash_id, "a")
    assert load_value(step.output_path) == (1, "x")


def test_a_done_step_is_looked_at_again_under_the_lease(tmp_path: Path) -> None:
    step = StepSpec("a", lambda path: None, output_path_prefix=str(tmp_path))
    _, first = execute(step, {"dep": "1"})
    assert execute(step, {"dep": "1"}) == (Cached(execute(step, {"dep": "1"})[0].value), first)
    assert execute(step, {"dep": "2"})[1].build != first.build, "the dependency was built anew"
    assert isinstance(execute(step, {"dep": "2"}, forced=True)[0], Done)


def test_a_killed_clearing_cannot_leave_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record goes first: a folder that is half cleared must not look done."""
    step = StepSpec("a", lambda path: Path(path, "x").touch(), output_path_prefix=str(tmp_path))
    execute(step, {})

    def die(*_: object) -> None:
        raise OSError("killed")

    monkeypatch.setattr("shutil.rmtree", die)
    with pytest.raises(OSError, match="killed"):
        execute(step, {}, forced=True)
    assert read_record(step.output_path) is None


def test_a_record_that_cannot_be_written_is_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = StepSpec("a", lambda path: None, output_path_prefix=str(tmp_path))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        execute(step, {})
    monkeypatch.undo()
    assert isinstance(execute(step, {})[0], Done)


def test_what_is_no_value_names_step_and_type(tmp_path: Path) -> None:
    step = StepSpec("a", lambda path: object(), output_path_prefix=str(tmp_path))
    with pytest.raises(ArtifactError, match=f"step {step.id} returned what cannot .*builtins.object"):
        execute(step, {})


def test_whoever_waits_for_a_lease_can_be_stopped(tmp_path: Path) -> None:
    path = str(tmp_path / "step")

    def take() -> None:
        with lease(path):
            raise AssertionError("it is taken")

    client = ThreadClient(1)
    elsewhere = contextvars.copy_context()
    with lease(path):
        job = elsewhere.run(client.submit, JobRequest("wait", take))
        while job.status() is JobStatus.PENDING:
            time.sleep(0.001)
        job.terminate()
        assert job.wait(10) is JobStatus.STOPPED
        with pytest.raises(StepError, match="asked to stop while another owner had the step"):
            job.result()


def test_whoever_waits_for_a_lease_holds_no_slot_of_the_client(tmp_path: Path) -> None:
    """The owner may need that slot to come to its end."""
    path = str(tmp_path / "step")

    def take() -> str:
        with lease(path):
            return "had it"

    client = ThreadClient(1)
    elsewhere = contextvars.copy_context()
    with lease(path):
        job = elsewhere.run(client.submit, JobRequest("wait", take))
        assert client.submit(JobRequest("other", lambda: 1)).result(10) == 1
    assert job.result(10) == "had it"


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


def test_a_copied_record_is_no_output(tmp_path: Path) -> None:
    """Whoever copies the folder of a dependency copies its record; listed, it would never stand again."""
    source = StepSpec("source", lambda path: Path(path, "x").touch(), output_path_prefix=str(tmp_path))

    def copy(path: str) -> None:
        shutil.copytree(source.output_path, path, dirs_exist_ok=True)

    step = StepSpec("copy", copy, output_path_prefix=str(tmp_path))
    execute(source, {})
    assert [each.path for each in execute(step, {})[1].files] == ["x"]
    assert isinstance(execute(step, {})[0], Cached)


def replace_by_a_file(path: str) -> None:
    shutil.rmtree(path)
    Path(path).touch()


@pytest.mark.parametrize("body", [shutil.rmtree, replace_by_a_file])
def test_a_step_that_removes_its_folder_is_told_so_and_can_run_again(tmp_path: Path, body: Any) -> None:
    step = StepSpec("a", body, output_path_prefix=str(tmp_path))
    for _ in range(2):
        with pytest.raises(StepError, match=f"step {step.id}: its output folder is gone"):
            execute(step, {})


def test_a_folder_that_is_a_link_is_replaced_and_what_it_points_to_is_kept(tmp_path: Path) -> None:
    step = StepSpec("a", lambda path: None, output_path_prefix=str(tmp_path / "store"))
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    Path(step.output_path).parent.mkdir(parents=True)
    Path(step.output_path).symlink_to(other)
    execute(step, {})
    assert not Path(step.output_path).is_symlink()
    assert (other / "kept").exists()


def test_a_place_that_holds_what_no_step_has_made_is_not_cleared(tmp_path: Path) -> None:
    """A step begins in an empty folder; whoever names a folder full of data by hand must not lose it."""
    data = tmp_path / "data"
    data.mkdir()
    step = StepSpec(
        "a", lambda path: None, output_path_prefix=str(tmp_path / "store"), override_output_path=str(data)
    )
    (data / "mine").touch()
    for _ in range(2):
        with pytest.raises(StepError, match="override_output_path: expected a new or empty folder"):
            execute(step, {})
    assert (data / "mine").exists()
    (data / "mine").unlink()
    execute(step, {})
    (data / "mine").touch()
    (data / ".record.json").unlink()
    assert isinstance(execute(step, {})[0], Done), "it is the step's own folder now"


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
