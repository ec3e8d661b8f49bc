"""A run of type `generate` that was killed, or failed, goes on with the rows that have no answer yet."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.processing.generating import BATCH, Asking, before, words
from treadle.errors import BadRowError, RunError

ROWS = 120
QUARANTINE = {"on_bad_row": "quarantine"}


@pytest.fixture
def answered(asking: Asking) -> Asking:
    """All rows but the last, which is bad, have an answer: the run fails for that row's sake."""
    asking.write("a", [*words(10), {"id": "last", "word": None}])
    with pytest.raises(BadRowError, match=r"a\.jsonl:11: word is null"):
        asking.run()
    asking.write("a", words(10))
    return asking


@pytest.mark.parametrize(
    ("seed", "kills"), [(0, 2), *(pytest.param(seed, 4, marks=pytest.mark.slow) for seed in range(1, 7))]
)
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_nobody_disturbed(
    asking: Asking, seed: int, kills: int
) -> None:
    """Each row has one answer, and of those asked about twice there are no more than were under way."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    asking.write("a", words(ROWS // 3))
    asking.write("b", [{"id": "bad", "word": None}, *words(ROWS - ROWS // 3, start=ROWS // 3)])
    places = [chance.randint(1, ROWS // (kills + 1)) for _ in range(kills)]
    killed = [asking.run_and_kill("cut", place, errors=QUARANTINE) for place in places]
    asked = ROWS - before(asking.run("cut", errors=QUARANTINE))
    asking.run("whole", errors=QUARANTINE)
    assert asking.answers("cut") == asking.answers("whole")
    assert [row["id"] for row in asking.answers("cut")] == [row["id"] for row in words(ROWS)]
    assert sum(map(len, killed)) + asked <= ROWS + kills * BATCH
    assert killed[0], "it was killed before it began"
    assert asked < ROWS, "nothing was kept"
    assert not list((asking.root / "cut").glob(".*")), "the checkpoint is gone"
    rejected = [(asking.root / out / "step.quarantine.jsonl").read_bytes() for out in ("cut", "whole")]
    assert rejected[0] == rejected[1]


def test_a_run_that_failed_asks_nothing_again_and_loads_no_model(
    answered: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file with the rows is another one by now: rows are known by what they ask, not by their place."""
    monkeypatch.delattr("treadle.engine.engine.Engine.load")
    assert before(answered.run()) == 10
    monkeypatch.undo()
    answered.run("whole")
    assert answered.answers() == answered.answers("whole")


def test_only_rows_that_are_new_are_asked_about(answered: Asking) -> None:
    """Wherever they stand, and in whatever file; one whose prompt has changed is new."""
    rows = list(words(10))
    rows[3] = {**rows[3], "word": "changed"}
    answered.write("b", reversed(rows))
    answered.write("a", [{"id": "first", "word": "new"}])
    assert before(answered.run()) == 9
    answered.run("whole")
    assert answered.answers() == answered.answers("whole")


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, 10),
        ({"batch": 2, "token_budget": 64, "cache_tokens": 200, "prefix_cache": False}, 10),
        ({"preemption": "recompute"}, 10),
        ({"errors": {"on_bad_row": "skip"}, "keep": ["word"], "backend": "jsonl"}, 10),
        ({"parallelism": {"batch_rows": 7}}, 10),
        ({"prompt": "{word} and so"}, 0),
        ({"max_new_tokens": 9}, 0),
        ({"temperature": 0.8}, 0),
        ({"stop": ["x"]}, 0),
        ({"precision": "bfloat16"}, 0),
        ({"runtime": {"seed": 1}}, 0),
    ],
)
def test_a_setting_begins_anew_only_if_it_can_change_an_answer(
    answered: Asking, change: dict[str, Any], kept: int
) -> None:
    """Whoever ran out of memory, or met a bad row, changes that and wants the answers that there are."""
    assert before(answered.run(**change)) == kept


def test_what_the_kept_answers_took_is_told_apart(answered: Asking) -> None:
    """The sums are those of the output; a run's own are what is left."""
    answered.write("a", words(12))
    sums = answered.run().counters.extra
    rows = answered.answers()
    assert sums["answered_before"] == 10
    for name in ("prompt_tokens", "new_tokens"):
        assert sums[f"{name}_before"] == sum(row[name] for row in rows[:10])
        assert sums[name] - sums[f"{name}_before"] == sum(row[name] for row in rows[10:])
    assert 0 < sums["engine_milliseconds_before"] < sums["engine_milliseconds"]
    assert sums["cut_answers"] == sum(row["finish_reason"] == "length" for row in rows)


def test_answers_to_something_else_wait_until_it_is_asked_again(answered: Asking) -> None:
    """Two settings may be tried in turn."""
    answered.write("b", [{"id": "last", "word": None}])
    with pytest.raises(BadRowError):
        answered.run(temperature=0)
    (answered.rows / "b.jsonl").unlink()
    assert before(answered.run()) == 10


def test_another_model_at_the_same_place_begins_anew(answered: Asking, tmp_path: Path) -> None:
    """Its answers would be mixed with those of the one before."""
    answered.model = shutil.copytree(answered.model, tmp_path / "model")
    answered.write("z", [{"id": "last", "word": None}])
    for _ in range(2):
        with pytest.raises(BadRowError):
            answered.run("moved")
    (answered.rows / "z.jsonl").unlink()
    (answered.model / "config.json").touch()
    assert before(answered.run("moved")) == 0


def test_an_output_that_is_in_place_stands_when_the_run_goes_on(asking: Asking) -> None:
    """What rows cost is measured, and yet the files are the same: it is kept with the answers."""
    asking.write("a", words(10))
    account = asking.root / "out" / "step.account.json"
    account.mkdir(parents=True)
    with pytest.raises(RunError, match="its outputs are complete"):
        asking.run()
    account.rmdir()
    there = (asking.root / "out" / "answers").stat().st_ino
    assert before(asking.run()) == 10
    assert (asking.root / "out" / "answers").stat().st_ino == there


def test_a_row_without_an_answer_is_asked_about_again(asking: Asking) -> None:
    """What the engine refused may work next time: with more room, or when the row was mended."""
    asking.write("a", [*words(3), {"id": "long", "word": "far " * 200}])
    for _ in range(2):
        with pytest.raises(BadRowError, match=r"a\.jsonl:4: the prompt has"):
            asking.run()
    asking.write("a", [*words(3), {"id": "long", "word": "far"}])
    assert before(asking.run()) == 3
    assert [row["id"] for row in asking.answers()] == ["row 0", "row 1", "row 2", "long"]


def test_what_is_kept_of_a_run_that_kept_nothing_is_nothing(asking: Asking) -> None:
    asking.write("a", [{"id": 1}])
    with pytest.raises(RunError, match="expected a column 'word'"):
        asking.run()
    assert not (asking.root / "out").exists()


def test_a_checkpoint_changes_no_answer(asking: Asking) -> None:
    asking.write("a", words(10))
    asking.run("with")
    asking.run("without", checkpoint=None)
    assert asking.answers("with") == asking.answers("without")
