"""What the commands say of a run of type `generate`: what is kept of it, and what its rows took."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.engine.folders import write_language_model
from tests.processing.generating import Asking, words
from treadle.integrations.cli.app import main
from treadle.integrations.cli.units_progress import live_progress
from treadle.processing import RunContext, run_from_manifest
from treadle.telemetry import PhaseStarted, RowsAnswered


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path, write_language_model(tmp_path / "model"))


def test_the_answers_that_are_kept_and_the_tokens_are_told(
    asking: Asking, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who goes on wants to know that nothing is paid twice, and what this run took."""
    arguments = stopped_by_its_last_row(asking)
    assert "a.jsonl:6: word is null" in capsys.readouterr().err
    assert main(["manifest", "plan", *arguments]) == 0
    told = capsys.readouterr().out
    assert ".step.checkpoint; 5 rows done: a run goes on with the others" in told
    asking.write("a", words(6))
    assert main(["manifest", "run", *arguments]) == 0
    told = capsys.readouterr().out
    assert "5 answers were kept from before" in told
    assert told_of_the_engine(told) == costs(asking, "row 5")
    asking.write("a", words(1))
    assert main(["manifest", "run", *arguments[:1], "--output", str(tmp_path / "other")]) == 0
    told = capsys.readouterr().out
    assert "kept from before" not in told
    assert told_of_the_engine(told) == costs(asking, "row 0")


def test_a_run_that_asks_nothing_tells_no_pace(asking: Asking, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine was not even loaded, and the time of the run before is not that of this one."""
    arguments = stopped_by_its_last_row(asking)
    asking.write("a", words(5))
    capsys.readouterr()
    assert main(["manifest", "run", *arguments]) == 0
    told = capsys.readouterr().out
    assert "5 answers were kept from before" in told
    assert "of the engine" not in told


def test_answers_that_are_cut_are_counted(asking: Asking, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those of the run before: what counts is what is in the output."""
    arguments = stopped_by_its_last_row(asking)
    asking.write("a", words(6))
    capsys.readouterr()
    assert main(["manifest", "run", *arguments]) == 0
    cut = sum(row["finish_reason"] == "length" for row in asking.answers())
    assert cut > 1, "a case that tells nothing"
    assert f"{cut} of 6 answers were cut short by max_new_tokens\n" in capsys.readouterr().out


def test_a_plan_after_a_change_of_settings_says_that_answers_are_kept(
    asking: Asking, capsys: pytest.CaptureFixture[str]
) -> None:
    """That they were cleared would be hours lost; a run of other columns asks nothing again."""
    arguments = stopped_by_its_last_row(asking)
    asking.write("a", words(5))
    asking.manifest(keep=["word"])
    capsys.readouterr()
    assert main(["manifest", "plan", *arguments]) == 0
    told = capsys.readouterr().out
    assert ".step.checkpoint; 5 answers kept: a run writes the output anew, and asks only about rows" in told
    assert "clears" not in told
    assert main(["manifest", "run", *arguments]) == 0
    assert "5 answers were kept from before" in capsys.readouterr().out


def test_the_rows_that_are_answered_stand_beside_the_bar() -> None:
    """The bar itself counts files, and may stand still for hours."""
    console = Console(file=StringIO(), force_terminal=True, width=100)
    with live_progress(console) as bars:
        bars.emit(PhaseStarted("run", "main", 1))
        bars.emit(RowsAnswered("run", 1, 10, 0.0))
        bars.emit(RowsAnswered("run", 1_200, 50_000, 40.0))
    assert "main: 1,200 rows answered, 1,250 tokens/s" in shown(console)


def test_a_run_on_a_terminal_tells_its_rows(asking: Asking) -> None:
    asking.write("a", words(3))
    console = Console(file=StringIO(), force_terminal=True, width=100)
    ctx = RunContext.create("step", asking.root / "out")
    with live_progress(console) as bars:
        run_from_manifest(asking.manifest(), ctx, sink=bars)
    assert re.search(r"main: 3 rows answered, [\d,]+ tokens/s", shown(console))


def stopped_by_its_last_row(asking: Asking) -> list[str]:
    """The arguments of a run that failed and has left five answers."""
    asking.write("a", [*words(5), {"id": "bad", "word": None}])
    arguments = [str(asking.manifest()), "--output", str(asking.root / "out")]
    assert main(["manifest", "run", *arguments]) == 1
    return arguments


def told_of_the_engine(told: str) -> tuple[int, int]:
    """The tokens that were read, and those that were generated."""
    found = re.search(
        r"([\d,]+) tokens read, (\d+) generated in [\d.]+ s of the engine( \([\d,.]+ tokens/s\))?\n", told
    )
    assert found is not None, told
    return int(found[1]), int(found[2])


def costs(asking: Asking, name: str) -> tuple[int, int]:
    """What one row took, by the output."""
    [row] = [row for row in asking.answers() if row["id"] == name]
    return row["prompt_tokens"], row["new_tokens"]


def shown(console: Console) -> str:
    """All that a terminal was given."""
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()
