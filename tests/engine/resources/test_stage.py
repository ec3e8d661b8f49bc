"""What a resource remembers of a step that was reserved ahead."""

from treadle.engine.resources.stage import Stage
from treadle.engine.resources.step import ResourceStep, Segment

STEP = ResourceStep((Segment("a", 1),))


def test_a_stage_that_is_cleared_gives_its_step_back_once() -> None:
    """What it reserved is given back by whoever clears it."""
    stage: Stage[str] = Stage()
    assert stage.clear() is None
    stage.reserved(STEP, ahead=True)
    stage.planned("plan")
    assert stage.clear() is STEP
    assert (stage.clear(), stage.promote()) == (None, None)


def test_a_staged_step_that_is_admitted_is_live() -> None:
    """Its reservations are needed whatever becomes of the stage."""
    stage: Stage[str] = Stage()
    stage.reserved(STEP, ahead=True)
    stage.reserved(STEP, ahead=False)
    assert stage.clear() is None
    stage.reserved(STEP, ahead=True)
    assert stage.clear() is STEP


def test_a_plan_is_promoted_once_and_not_by_another_stage() -> None:
    """A plan of another moment would send tokens to other places."""
    stage: Stage[str] = Stage()
    stage.reserved(STEP, ahead=True)
    stage.planned("plan")
    assert (stage.promote(), stage.promote()) == ("plan", None)
    stage.reserved(STEP, ahead=True)
    stage.planned("old")
    stage.reserved(STEP, ahead=True)
    assert stage.promote() is None
