"""Whatever fails in the walk of a run, alone or with another: one finalisation, one end, nothing visible."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from treadle.errors import RunError
from treadle.processing import dispatch
from treadle.telemetry import finalize_metrics

BODY = """
    run: {type: partition}
    inputs: {documents: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    transform: {name: tokenize}
    outputs: {rows: {backend: jsonl, path: rows}}
    runtime: {metrics_enabled: true}
"""
STAGES = (
    "scratch_specs",
    "Account",
    "Workplace",
    "_balanced",
    "finalize_metrics",
)
"""In the order in which the walk comes to them; the last one after the work, whatever happened to it."""


class Broken(Exception):
    pass


def breaking(stage: str, done: Callable[..., object] | None = None) -> Callable[..., object]:
    def fail(*args: Any, **named: Any) -> object:
        if done is not None:
            done(*args, **named)
        raise Broken(stage)

    return fail


@pytest.fixture
def finalized(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    outcomes: list[str] = []

    def recording(metrics: Any, outcome: Any) -> object:
        outcomes.append(outcome)
        return finalize_metrics(metrics, outcome)

    monkeypatch.setattr(dispatch, "finalize_metrics", recording)
    return outcomes


@pytest.mark.parametrize("failing", [*((each,) for each in STAGES), *combinations(STAGES, 2)])
def test_every_stage_may_fail(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, finalized: list[str], failing: tuple[str, ...]
) -> None:
    """The first error is the one raised, the second a note; nobody hears of two ends, or of none."""
    workshop.rows("a", [{"text": "one two"}])
    for stage in failing:
        done = getattr(dispatch, stage) if stage == "finalize_metrics" else None
        monkeypatch.setattr(dispatch, stage, breaking(stage, done))
    with pytest.raises(Broken) as caught:
        workshop.run(BODY)
    first, *others = failing
    assert str(caught.value) == first
    if others == ["finalize_metrics"]:
        assert "Broken: finalize_metrics" in "".join(caught.value.__notes__)
    worked = first == "finalize_metrics"
    assert finalized == ["finished" if worked else "failed"]
    names = [name for name in workshop.events() if name != "UnitDone"]
    assert names == ["RunStarted", "MetricsFinalized", "RunEnded"]
    assert workshop.sink.events[-1].outcome == ("finished" if worked else "failed")
    if not worked:
        assert workshop.visible() == []


@pytest.mark.parametrize("stage", ["check_manifest", "choose", "check_targets"])
def test_what_is_refused_before_the_start_is_told_to_no_sink(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, finalized: list[str], stage: str
) -> None:
    """Those that the manifest names may have what another run has told."""
    workshop.rows("a", [{"text": "one two"}])
    monkeypatch.setattr(dispatch, stage, breaking(stage))
    with pytest.raises(Broken, match=stage):
        workshop.run(BODY + '    metrics: {log: "log.jsonl"}\n')
    assert finalized == workshop.events() == []
    assert not workshop.out.exists()


def test_an_account_that_cannot_be_written_is_told(workshop: Any) -> None:
    """The outputs are whole by then, so the message must not send anybody to do them again."""
    workshop.rows("a", [{"text": "one two"}])
    (workshop.out / "step.account.json").mkdir(parents=True)
    with pytest.raises(RunError, match=r"its outputs are complete, but the account .* cannot be written"):
        workshop.run(BODY)


def test_an_account_that_cannot_be_written_is_written_by_the_next_run_of_a_checkpoint(workshop: Any) -> None:
    """The outputs stand as they are, and no unit is done again."""
    workshop.rows("a", [{"text": "one two"}])
    account = workshop.out / "step.account.json"
    account.mkdir(parents=True)
    body = BODY + "\n    checkpoint: {}\n"
    with pytest.raises(RunError, match=r"make room there and run again to end this one"):
        workshop.run(body)
    before = (workshop.out / "rows").stat().st_ino
    account.rmdir()
    outcome = workshop.run(body)
    assert [each.resumed for each in outcome.units] == [True]
    assert account.is_file()
    assert (workshop.out / "rows").stat().st_ino == before
