"""The envelopes of a step."""

import pytest

from treadle.engine.resources.step import ResourceStep, Segment, StepContext, SubmoduleStep
from treadle.errors import EngineError

BATCH = (Segment("a", 3), Segment("b", 1))


def test_a_resource_step_without_segments_inherits_the_batch() -> None:
    """Most resources see every row; writing the list out for each would invite differences."""
    step = SubmoduleStep({"kv": ResourceStep()}, BATCH)
    assert step.resources["kv"].rows is BATCH


def test_a_resource_step_keeps_its_own_segments() -> None:
    """The sampler sees only the rows that need a token."""
    own = (Segment("b", 1),)
    step = SubmoduleStep({"sampler": ResourceStep(own), "kv": ResourceStep()}, BATCH)
    assert step.resources["sampler"].rows is own


def test_an_empty_own_list_is_kept_too() -> None:
    """No rows is an answer, not an absence."""
    assert SubmoduleStep({"sampler": ResourceStep(())}, BATCH).resources["sampler"].rows == ()


def test_a_loose_resource_step_has_no_rows() -> None:
    """Reading nothing as an empty batch would skip every row in silence."""
    with pytest.raises(EngineError, match="SubmoduleStep"):
        _ = ResourceStep().rows


def test_a_result_is_typed_by_who_reads_it() -> None:
    """An untyped look-up would surface a wrong plan deep inside the forward pass."""
    ctx = StepContext(plan_results={"kv": 3})
    assert ctx.result("kv", int) == 3
    with pytest.raises(EngineError, match="'kv' should be a str, got int"):
        ctx.result("kv", str)
    with pytest.raises(EngineError, match="depends_on"):
        ctx.result("attention", str)
