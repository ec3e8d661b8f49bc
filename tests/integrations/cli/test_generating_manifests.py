"""What the commands say of a run of type `generate`: what is kept of it, and what its rows took."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engine.folders import write_language_model
from tests.processing.generating import Asking, words
from treadle.integrations.cli.app import main


def test_the_answers_that_are_kept_and_the_tokens_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who goes on wants to know that nothing is paid twice."""
    asking = Asking(tmp_path, write_language_model(tmp_path / "model"))
    asking.write("a", [*words(5), {"id": "bad", "word": None}])
    arguments = [str(asking.manifest()), "--output", str(tmp_path / "out")]
    assert main(["manifest", "run", *arguments]) == 1
    assert "a.jsonl:6: word is null" in capsys.readouterr().err
    assert main(["manifest", "plan", *arguments]) == 0
    told = capsys.readouterr().out
    assert ".step.checkpoint; 5 rows done: a run goes on with the others" in told
    asking.write("a", words(6))
    assert main(["manifest", "run", *arguments]) == 0
    told = capsys.readouterr().out
    assert "5 rows had an answer already" in told
    assert re.search(
        r"[\d,]+ tokens read, \d+ generated in [\d.]+ s of the engine( \([\d,.]+ tokens/s\))?\n", told
    )
