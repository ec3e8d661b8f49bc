"""Done is what the ledger says and the disk confirms; whatever was left in the middle is done again."""

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from treadle.artifacts import open_store
from treadle.errors import StepsFailedError
from treadle.execution import StepRunner, StepSpec
from treadle.fray import stop_requested
from treadle.kernel import Cached, Done, Failed, Skipped

pytestmark = pytest.mark.timeout(60)


def test_a_step_that_wrote_half_and_raised_is_done_again_in_an_empty_folder(tmp_path: Path) -> None:
    """A kept half of a file counts as the whole next time, where to exist is to be done."""
    found: list[list[str]] = []

    def body(path: str) -> None:
        found.append([each.name for each in Path(path).iterdir()])
        Path(path, "out.txt").write_text("half")
        if len(found) == 1:
            raise ValueError("in the middle")
        Path(path, "out.txt").write_text("whole")

    step = StepSpec("a", body, output_path_prefix=str(tmp_path))
    with pytest.raises(StepsFailedError):
        StepRunner().run([step])
    assert not Path(step.output_path).exists()
    StepRunner().run([step])
    assert found == [[], []]
    assert Path(step.output_path, "out.txt").read_text() == "whole"


def test_a_record_whose_artifact_is_missing_is_not_believed(toy: Any) -> None:
    """A run that dies on a missing result that is said to be complete needs a person."""
    a = toy.step("a")
    b = toy.step("b", a)
    StepRunner().run([b])
    Path(a.output_path, "out.txt").unlink()
    assert toy.ran_again([a, b]) == ["a", "b"]
    assert toy.ran_again([a, b]) == []


def test_an_output_that_ctrl_c_interrupted_is_not_used(toy: Any) -> None:
    def body() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not stop_requested():
            time.sleep(0.001)
        raise RuntimeError("in the middle of writing")

    step = toy.step("a", body=body)
    with pytest.raises(KeyboardInterrupt):
        StepRunner().run([step])
    assert not Path(step.output_path).exists()
    again = toy.step("a")
    assert toy.ran_again([again]) == ["a"]
    [last, first] = open_store(str(toy.store)).ledger.attempts(f"a/{step.hash_id}")
    assert (first.outcome, last.outcome) == ("cancelled", "done")


def test_skipped_is_not_failed_and_passes_on_whom_to_blame(toy: Any) -> None:
    """What never ran has no result, and must not be taken for a step that failed."""
    fail = toy.step("fail")
    skip = toy.step("skip", fail)
    far = toy.step("far", skip)
    toy.fails = {"fail"}
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([far])
    ends = {each.name: each.outcome for each in caught.value.results.outcomes.values()}  # type: ignore[attr-defined]
    assert isinstance(ends["fail"], Failed)
    assert ends["skip"] == ends["far"] == Skipped((fail.id,))
    ledger = open_store(str(toy.store)).ledger
    places = [f"{each.name}/{each.hash_id}" for each in (fail, skip, far)]
    notes = {note.name: note for note in ledger.last_attempts(places).values()}
    assert {name: note.outcome for name, note in notes.items()} == {
        "fail": "failed", "skip": "skipped", "far": "skipped",
    }  # fmt: skip
    assert notes["far"].reason == f"because of {fail.id}"


def test_each_step_has_one_end_and_the_counts_add_up(toy: Any) -> None:
    """A summary that lists as not run what ran, because two needed it, sends people looking for nothing."""
    top = toy.step("top")
    left, right, bad = toy.step("left", top), toy.step("right", top), toy.step("bad", top)
    sink, lost = toy.step("sink", left, right), toy.step("lost", bad, left)
    toy.fails = {"bad"}
    StepRunner().run([left])
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([sink, lost, top, left, right])
    results: Any = caught.value.results
    assert results.counts == {Cached: 2, Done: 2, Failed: 1, Skipped: 1}
    assert len(results.outcomes) == 6
    assert Counter(type(each.outcome) for each in results.outcomes.values()) == results.counts


def test_threads_that_ask_for_one_step_get_one_build(toy: Any) -> None:
    """Callers that read what another one is writing find half of it, and compute it again."""
    step = toy.step("a", body=lambda: time.sleep(0.05))
    found: list[str] = []

    def ask() -> None:
        StepRunner(1).run([step])
        found.append(Path(step.output_path, "out.txt").read_text())

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["a"] * 20
    assert toy.ran == ["a"]
    assert len(open_store(str(toy.store)).records(f"a/{step.hash_id}")) == 1


@pytest.mark.parametrize("absolute", [True, False])
def test_a_link_inside_an_output_still_leads_there(tmp_path: Path, absolute: bool) -> None:
    """A link such as `latest` is made in the working folder, which is another one when the step is done."""

    def body(path: str) -> None:
        Path(path, "step-10").mkdir()
        Path(path, "step-10", "w.txt").write_text("w")
        folder = Path(path) if absolute else Path()
        Path(path, "latest").symlink_to(folder / "step-10")
        Path(path, "w.txt").symlink_to(folder / "step-10" / "w.txt")

    step = StepSpec("a", body, output_path_prefix=str(tmp_path))
    StepRunner().run([step])
    assert Path(step.output_path, "w.txt").read_text() == "w"
    assert Path(step.output_path, "latest", "w.txt").read_text() == "w"
    outcome = StepRunner().run([step]).outcomes[step.id].outcome
    assert isinstance(outcome, Cached)
