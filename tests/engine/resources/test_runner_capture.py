"""Padding rows and static buffers, for steps that are captured once and replayed."""

import pytest

from tests.engine.resources.stubs import CapturingStub, Stub
from treadle.engine.resources.runner import StepRunner
from treadle.errors import EngineError, UnknownNameError


def built() -> tuple[StepRunner, list[str], dict[str, Stub]]:
    calls: list[str] = []
    stubs = {
        "kv": CapturingStub("kv", calls),
        "other": CapturingStub("other", calls),
        "sampler": Stub("sampler", calls),
    }
    return StepRunner(stubs, {"one": ["kv", "sampler"], "two": ["other"]}), calls, stubs


def test_a_padding_row_is_open_everywhere() -> None:
    """A captured step has it in every resource; those without a row of their own open it as a request."""
    runner, calls, stubs = built()
    runner.ingest_capture_row("padding")
    runner.ingest_capture_row("padding")
    assert calls == ["ingest row kv padding", "ingest row other padding", "ingest sampler padding"]
    assert stubs["sampler"].overrides == {"padding": None}


def test_a_padding_row_is_open_everywhere_or_nowhere() -> None:
    """As a request is."""
    runner, calls, stubs = built()
    stubs["sampler"].raises = {"ingest": EngineError("broken")}
    with pytest.raises(EngineError, match="broken"):
        runner.ingest_capture_row("padding")
    assert calls[3:] == ["remove sampler padding", "remove other padding", "remove kv padding"]


def test_a_padding_row_is_removed_like_a_request() -> None:
    """And may be opened again, for another shape."""
    runner, calls, _ = built()
    runner.ingest_capture_row("padding")
    runner.remove_request("padding")
    runner.ingest_capture_row("padding")
    assert calls.count("ingest row kv padding") == 2
    assert calls.count("remove kv padding") == 1


def test_a_padding_row_and_a_request_cannot_have_one_name() -> None:
    """Taken for the other, a request would be computed into the place that nobody reads."""
    runner, calls, _ = built()
    runner.ingest_capture_row("x")
    with pytest.raises(EngineError, match="'x' is a padding row"):
        runner.ingest_request("x")
    runner.ingest_request("r")
    with pytest.raises(EngineError, match="'r' is an open request"):
        runner.ingest_capture_row("r")
    assert len(calls) == 6
    runner.remove_request("x")
    runner.ingest_request("x")


def test_buffers_are_built_for_the_node_that_captures() -> None:
    """Another node's batch says nothing about what its graphs never touch."""
    runner, calls, _ = built()
    runner.build_accelerator_graph_buffers(2, 8, 1024, "one")
    assert calls == ["build kv 2 8 1024"]
    with pytest.raises(UnknownNameError, match=r"stranger.*one.*two"):
        runner.build_accelerator_graph_buffers(2, 8, 1024, "stranger")


def test_without_a_node_all_build() -> None:
    """A single node needs no name."""
    runner, calls, _ = built()
    runner.build_accelerator_graph_buffers(slots=1, max_bs=4, max_seq_len=64)
    assert calls == ["build kv 1 4 64", "build other 1 4 64"]
    calls.clear()
    StepRunner({"kv": CapturingStub("kv", calls)}).build_accelerator_graph_buffers(1, 4, 64, "any")
    assert calls == ["build kv 1 4 64"]
