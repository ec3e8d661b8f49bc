"""Runs of a step that names its own function: found, called and held to the same account."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from treadle.domain.result import Counters
from treadle.errors import AccountError, ManifestError, RunError

REGISTERED = """
    run: {type: partition, entry: step_entries.main}
    inputs: {documents: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    transform: {name: tokenize}
    outputs: {rows: {backend: parquet, path: rows}}
    runtime: {metrics_enabled: true}
"""

ENTRY = """
from treadle.ext import Counters

calls = []

def main(ctx, *, manifest_path):
    calls.append((ctx.step_id, dict(ctx.params), manifest_path))
    return Counters(rows_in=2, rows_out=2)

def nothing(ctx, *, manifest_path):
    return None

def wrong(ctx, *, manifest_path):
    return 7

def losing(ctx, *, manifest_path):
    return Counters(rows_in=2)

constant = 3
"""


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `step_entries`, importable for one test."""
    (tmp_path / "step_entries.py").write_text(ENTRY)
    (tmp_path / "broken_entries.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaving_entries.py").write_text("raise SystemExit(0)\n")
    yield
    sys.modules.pop("step_entries", None)


@pytest.mark.parametrize("entry", ["step_entries:main", "step_entries.main"])
def test_an_entry_is_called_with_context_and_manifest(workshop: Any, entries: Any, entry: str) -> None:
    outcome = workshop.run(f"run: {{type: custom, entry: '{entry}'}}")
    (call,) = sys.modules["step_entries"].calls
    assert call == ("step", {"in": str(workshop.root / "in")}, str(workshop.root / "manifest.yaml"))
    assert outcome.counters.rows_out == 2
    assert workshop.events() == ["RunStarted", "RunEnded"]


def test_an_entry_may_count_nothing(workshop: Any, entries: Any) -> None:
    assert workshop.run("run: {type: custom, entry: step_entries.nothing}").counters == Counters()


def test_a_registered_run_type_wins_over_an_entry(workshop: Any, entries: Any) -> None:
    """So that a manifest means the same whether or not it also names an entry."""
    workshop.rows("a", [{"text": "word"}])
    outcome = workshop.run(REGISTERED)
    assert outcome.counters.rows_out == 1
    assert "step_entries" not in sys.modules


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("step_entries", "expected package.module:function, found 'step_entries'"),
        ("step_entries:", "expected package.module:function"),
        ("step_entries:mian", "a callable of step_entries, found 'mian'; did you mean 'main'?"),
        ("step_entries.constant", "a callable of step_entries, found 'constant'"),
        ("no_such_module:main", "expected a module that can be imported"),
        (".step_entries:main", "a module that can be imported"),
        ("leaving_entries:main", "SystemExit: 0"),
        ("broken_entries:main", "No module named 'no_such_module_anywhere'"),
    ],
)
def test_a_wrong_entry_is_placed_in_the_manifest(workshop: Any, entries: Any, entry: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        workshop.run(f"run: {{type: custom, entry: '{entry}'}}")
    assert caught.value.problems[0].field == "run.entry"
    assert caught.value.problems[0].line == 4
    assert said in str(caught.value)


def test_an_entry_that_returns_something_else_is_told(workshop: Any, entries: Any) -> None:
    with pytest.raises(RunError, match=r"step_entries.wrong returned int, expected Counters or None"):
        workshop.run("run: {type: custom, entry: step_entries.wrong}")
    with pytest.raises(AccountError):
        workshop.run("run: {type: custom, entry: step_entries.losing}")
