"""One step is reserved and planned ahead; any other that comes finds nothing of it."""

from collections.abc import Callable

import pytest

from tests.engine.resources.stubs import AheadStub, Stub, step_of
from treadle.engine.resources.kv_step import KvStep
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import NO_ROOM, Refusal, Segment, StepContext, SubmoduleStep
from treadle.errors import EngineError, GraphError

KEYS = ("kv", "attn", "sampler")


def built(**raises: dict[str, Exception]) -> tuple[StepRunner, list[str], dict[str, Stub]]:
    """kv and attn, which plan ahead, and a sampler, which does not."""
    calls: list[str] = []
    stubs = {
        "kv": AheadStub("kv", calls, raises=raises.get("kv")),
        "attn": AheadStub("attn", calls, "kv", raises=raises.get("attn")),
        "sampler": Stub("sampler", calls, "attn", raises=raises.get("sampler")),
    }
    return StepRunner(stubs), calls, stubs


def staged(**raises: dict[str, Exception]) -> tuple[StepRunner, list[str], dict[str, Stub]]:
    """With a stage for all three, and the calls so far forgotten."""
    runner, calls, stubs = built(**raises)
    step = step_of(*KEYS)
    runner.pre_admit(step)
    runner.pre_plan(step)
    calls.clear()
    return runner, calls, stubs


def test_only_what_plans_ahead_is_asked_ahead() -> None:
    """The sampler picks a token that the step in flight has not computed yet."""
    runner, calls, _ = built()
    step = step_of(*KEYS)
    assert runner.pre_admit(step).ready
    runner.pre_plan(step)
    assert calls == ["pre-admit kv", "pre-admit attn", "pre-plan kv", "pre-plan attn"]
    assert runner.staged


def test_the_plans_made_ahead_are_filed_for_each_other() -> None:
    """Attention plans from the pages that the cache has just planned, ahead as well."""
    runner, _, stubs = built()
    step = step_of(*KEYS, ctx=StepContext(plan_results={"sampler": "old"}))
    runner.pre_admit(step)
    results = runner.pre_plan(step)
    assert stubs["attn"].filed == {"kv": "plan of kv"}
    assert results == step.ctx.plan_results == {"kv": "plan of kv", "attn": "plan of attn"}


def test_the_same_step_promotes_what_was_planned_ahead() -> None:
    """Planned twice it would be work for nothing; what was not planned ahead is planned now."""
    runner, calls, stubs = staged()
    step = step_of(*KEYS)
    assert runner.admit(step).ready
    results = runner.plan(step)
    assert calls == ["admit kv", "admit attn", "admit sampler", "promote kv", "promote attn", "plan sampler"]
    assert results["attn"] == "promoted plan of attn"
    assert stubs["sampler"].filed == {"kv": "promoted plan of kv", "attn": "promoted plan of attn"}
    assert not runner.staged


def test_a_plan_is_promoted_once() -> None:
    """A second step that is declared alike is another moment: its pages are others."""
    runner, calls, _ = staged()
    for _ in range(2):
        step = step_of(*KEYS)
        runner.admit(step)
        runner.plan(step)
        runner.commit(step)
    assert calls.count("promote kv") == 1
    assert calls.count("plan kv") == 1


OTHERS = {
    "other requests": lambda: step_of(*KEYS, rids=("other",)),
    "one request more": lambda: step_of(*KEYS, rids=("r", "other")),
    "other resources": lambda: step_of("kv", "attn"),
    "another walk": lambda: step_of(*KEYS, ctx=StepContext(graph_walk="prefill")),
    "another walk of a request": lambda: step_of(*KEYS, ctx=StepContext(request_walks={"r": "prefill"})),
    "another slot": lambda: step_of(*KEYS, ctx=StepContext(slot=1)),
    "padding rows": lambda: step_of(*KEYS, ctx=StepContext(padded_request_ids=("padding",))),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_step_drops_the_stage_before_anything_is_done_for_it(
    other: Callable[[], SubmoduleStep],
) -> None:
    """Pages held by a wrong guess must not refuse the step that really comes."""
    runner, calls, _ = staged()
    assert runner.admit(other()).ready
    assert calls[:3] == ["clear attn", "clear kv", "admit kv"]
    assert not runner.staged
    runner.plan(other())
    assert not any("promote" in call for call in calls)


def test_another_plan_drops_the_stage_too() -> None:
    """A step that was admitted before the stage was made plans for itself."""
    runner, calls, _ = staged()
    runner.plan(step_of(*KEYS, rids=("other",)))
    assert calls == ["clear attn", "clear kv", "plan kv", "plan attn", "plan sampler"]


def test_another_stage_takes_the_place_of_the_first() -> None:
    """There is one pending place: two stages would write over each other."""
    runner, calls, _ = staged()
    runner.pre_admit(step_of(*KEYS, rids=("other",)))
    assert calls[:3] == ["clear attn", "clear kv", "pre-admit kv"]
    assert runner.staged


def test_staging_the_same_step_again_keeps_the_stage() -> None:
    """A scheduler that asks twice has not changed its mind."""
    runner, calls, _ = staged()
    assert runner.pre_admit(step_of(*KEYS)).ready
    assert calls == ["pre-admit kv", "pre-admit attn"]
    assert runner.staged


def test_a_refused_stage_is_unwound_and_named() -> None:
    """Ahead as in its turn: what one refused nobody holds."""
    runner, calls, stubs = built()
    stubs["attn"].answer = NO_ROOM
    outcome = runner.pre_admit(step_of(*KEYS))
    assert (outcome.ok, outcome.reason, outcome.key) == (False, Refusal.ALLOCATION_FAILED, "attn")
    assert calls == ["pre-admit kv", "pre-admit attn", "rollback attn", "rollback kv"]
    assert not runner.staged


def test_a_refused_step_takes_its_stage_with_it() -> None:
    """What the stage reserved belongs to the step, which does not run; nobody else would give it back."""
    runner, calls, stubs = staged()
    stubs["sampler"].answer = NO_ROOM
    assert runner.admit(step_of(*KEYS)).key == "sampler"
    assert calls[3:] == ["rollback sampler", "rollback attn", "rollback kv", "clear attn", "clear kv"]
    assert not runner.staged


def test_a_step_that_fails_to_be_admitted_takes_its_stage_with_it() -> None:
    """A broken resource must not leave a stage that no step will ever match."""
    runner, calls, stubs = staged()
    stubs["sampler"].raises = {"admit": EngineError("broken")}
    with pytest.raises(EngineError, match="broken"):
        runner.admit(step_of(*KEYS))
    assert calls[3:] == ["rollback sampler", "rollback attn", "rollback kv", "clear attn", "clear kv"]
    assert not runner.staged


def test_a_plan_ahead_that_fails_drops_the_stage() -> None:
    """Half a stage would be promoted as if it were whole."""
    runner, calls, _ = built(attn={"pre-plan": EngineError("broken")})
    step = step_of(*KEYS)
    runner.pre_admit(step)
    with pytest.raises(EngineError, match="broken"):
        runner.pre_plan(step)
    assert calls[-2:] == ["clear attn", "clear kv"]
    assert not runner.staged


def test_a_promotion_that_fails_drops_the_stage() -> None:
    """What one has promoted and another not is the stage of no step."""
    runner, calls, _ = staged(attn={"promote": EngineError("broken")})
    step = step_of(*KEYS)
    runner.admit(step)
    with pytest.raises(EngineError, match="broken"):
        runner.plan(step)
    assert calls[-2:] == ["clear attn", "clear kv"]
    assert not runner.staged


def test_clearing_tries_every_resource() -> None:
    """One that fails to let go must not make the others leak."""
    runner, calls, _ = staged(attn={"clear": EngineError("stuck")})
    with pytest.raises(EngineError, match="stuck"):
        runner.clear_preplan()
    assert calls == ["clear attn", "clear kv"]
    assert not runner.staged


def test_rolling_back_a_staged_step_drops_the_stage() -> None:
    """The step will not run, so its plan is of no use, and its reservations are nobody's."""
    runner, calls, _ = staged()
    step = step_of(*KEYS)
    runner.admit(step)
    calls.clear()
    runner.rollback_admit(step)
    assert calls == ["clear attn", "clear kv", "rollback sampler", "rollback attn", "rollback kv"]
    assert not runner.staged


def test_removing_a_staged_request_drops_the_stage() -> None:
    """Its pages are freed: a plan that is promoted later would write into somebody else's."""
    runner, calls, _ = staged()
    runner.remove_request("other")
    assert runner.staged
    calls.clear()
    runner.remove_request("r")
    assert calls == ["clear attn", "clear kv", "remove sampler r", "remove attn r", "remove kv r"]
    assert not runner.staged


def test_a_request_goes_also_when_its_stage_cannot_be_dropped() -> None:
    """What it holds besides would be held for ever; the error is told all the same."""
    runner, calls, _ = staged(kv={"clear": EngineError("stuck")})
    with pytest.raises(EngineError, match="stuck"):
        runner.remove_request("r")
    assert calls == ["clear attn", "clear kv", "remove sampler r", "remove attn r", "remove kv r"]
    assert not runner.staged


def test_a_commit_for_the_same_request_drops_the_stage() -> None:
    """It was planned from what the request had stored before."""
    runner, calls, _ = staged()
    runner.commit(step_of("kv", rids=("other",)))
    assert runner.staged
    runner.commit(step_of("kv"))
    assert calls == ["commit kv", "clear attn", "clear kv", "commit kv"]
    assert not runner.staged


@pytest.mark.parametrize("rid", ["source", "target"])
@pytest.mark.parametrize("goes", [True, False])
def test_a_stage_goes_with_the_requests_that_it_forks(rid: str, goes: bool) -> None:
    """They have no row in the step: what was forked from one that goes on, or into one that went, is old."""
    runner, calls, _ = built()
    forks = KvStep((Segment("r", 1),), before=(Fork("source", "left", to_request="target"),))
    runner.pre_admit(SubmoduleStep({"kv": forks}, (Segment("r", 1),)))
    calls.clear()
    if goes:
        runner.remove_request(rid)
    else:
        runner.commit(step_of("kv", rids=(rid,)))
    assert calls[:2] == ["clear attn", "clear kv"]
    assert not runner.staged


def test_a_step_may_be_planned_ahead_alone() -> None:
    """What planned is staged, and promoted or dropped like the rest."""
    runner, calls, _ = built()
    runner.pre_plan(step_of(*KEYS))
    assert runner.staged
    runner.clear_preplan()
    assert calls == ["pre-plan kv", "pre-plan attn", "clear attn", "clear kv"]
    assert not runner.staged


def test_clearing_without_a_stage_asks_all_the_same() -> None:
    """Who begins anew need not know what was before, nor the runner what a resource still holds."""
    runner, calls, _ = built()
    runner.clear_preplan()
    assert calls == ["clear attn", "clear kv"]
    assert not runner.staged


def test_a_step_with_an_unknown_key_leaves_the_stage_alone() -> None:
    """Nothing is done for a step that cannot be."""
    runner, calls, _ = staged()
    for verb in (runner.admit, runner.plan, runner.commit, runner.pre_admit, runner.rollback_admit):
        with pytest.raises(KeyError, match="kb"):
            verb(step_of("kv", "kb"))
    assert calls == []
    assert runner.staged


def test_a_pre_planner_may_not_depend_on_what_stays_behind() -> None:
    """It would read what that one planned for the step in flight; found at load, by name."""
    stubs = {"kv": Stub("kv", []), "attn": AheadStub("attn", [], "kv")}
    with pytest.raises(ValueError, match=r"'attn' plans ahead.*\['kv'\]") as caught:
        StepRunner(stubs)
    assert isinstance(caught.value, GraphError)


def test_without_pre_planners_a_stage_is_empty_and_harmless() -> None:
    """An engine need not know whether its resources plan ahead."""
    calls: list[str] = []
    runner = StepRunner({"kv": Stub("kv", calls)})
    step = step_of("kv")
    assert runner.pre_admit(step).ready
    assert runner.pre_plan(step) == {}
    assert runner.admit(step).ready
    assert runner.plan(step) == {"kv": "plan of kv"}
    assert calls == ["admit kv", "plan kv"]
