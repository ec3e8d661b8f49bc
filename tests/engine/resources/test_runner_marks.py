"""What a profiler sees: which resource is at work, and in which verb."""

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.engine.resources.stubs import AheadStub, Stub, step_of
from treadle.engine.resources.marks import NvtxMark, cuda_ranges, marked
from treadle.engine.resources.runner import StepRunner
from treadle.errors import EngineError
from treadle.telemetry import UnitDone
from treadle.telemetry.trace import TraceSink


def driven(calls: list[str]) -> StepRunner:
    runner = StepRunner({"kv": AheadStub("kv", calls), "attn": Stub("attn", calls, "kv")}, enable_nvtx=True)
    step = step_of("kv", "attn")
    runner.ingest_request("r")
    runner.pre_admit(step)
    runner.pre_plan(step)
    runner.admit(step)
    runner.plan(step)
    runner.commit(step)
    runner.remove_request("r")
    return runner


def test_without_marks_nothing_is_kept() -> None:
    """Resources are then called directly: a mark in each verb is a cost in each step."""
    stub = Stub("kv", [])
    runner = StepRunner({"kv": stub})
    assert runner.meter is None
    assert runner.resources["kv"] is stub


@pytest.mark.skipif(torch.cuda.is_available(), reason="where there is a GPU, NVTX takes the marks")
def test_without_a_gpu_the_marks_are_spans(tmp_path: Path) -> None:
    """A trace says which resource ate the time; the sum of all says only that somebody did."""
    runner = driven([])
    assert runner.meter is not None
    report = runner.meter.report()
    verbs = {"ingest", "admit", "plan", "commit", "remove"}
    attn = {f"{verb} attn" for verb in verbs}
    kv = {f"{verb} kv" for verb in verbs | {"promote"}}
    assert {span.stage for span in report.spans} == attn | kv
    sink = TraceSink(tmp_path / "trace.json")
    sink.emit(UnitDone("run", "engine", {}, report.seconds, report=report))
    sink.close()
    assert "promote kv" in {each["name"] for each in json.loads((tmp_path / "trace.json").read_text())}


@pytest.mark.skipif(torch.cuda.is_available(), reason="where there is a GPU, NVTX takes the marks")
def test_marks_change_nothing_else() -> None:
    """What is seen under a profiler is what happens without."""
    with_marks: list[str] = []
    without: list[str] = []
    assert driven(with_marks).resources["kv"].depends_on == ()
    runner = StepRunner({"kv": AheadStub("kv", without), "attn": Stub("attn", without, "kv")})
    step = step_of("kv", "attn")
    runner.ingest_request("r")
    for verb in (runner.pre_admit, runner.pre_plan, runner.admit, runner.plan, runner.commit):
        verb(step)
    runner.remove_request("r")
    assert with_marks == without


class Ranges:
    """What NVTX would be told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def range_push(self, msg: str) -> object:
        self.told.append(f"push {msg}")
        return None

    def range_pop(self) -> object:
        self.told.append("pop")
        return None


def test_a_range_is_closed_also_when_the_verb_fails() -> None:
    """One that stays open takes in everything that comes after it."""
    ranges = Ranges()
    stub = Stub("kv", [], raises={"plan": EngineError("broken"), "rollback": EngineError("stuck")})
    kv = marked({"kv": stub}, lambda name: NvtxMark(name, ranges))["kv"]
    step = step_of("kv")
    with pytest.raises(EngineError, match="broken"):
        kv.plan(step.resources["kv"], step.ctx)
    with pytest.raises(EngineError, match="stuck"):
        kv.rollback(step.resources["kv"], step.ctx)
    kv.check_integrity()
    assert ranges.told == ["push plan kv", "pop", "push rollback kv", "pop"]


def test_a_dropped_stage_is_marked() -> None:
    """A guess that is wrong most of the time is seen to be."""
    ranges = Ranges()
    resources = marked({"kv": AheadStub("kv", [])}, lambda name: NvtxMark(name, ranges))
    runner = StepRunner(resources)
    runner.clear_preplan()
    assert ranges.told == ["push clear_preplan kv", "pop"]


def test_there_are_ranges_where_torch_sees_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none without, or without torch: a push is a call into CUDA."""
    assert (cuda_ranges() is not None) == torch.cuda.is_available()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert cuda_ranges() is None
