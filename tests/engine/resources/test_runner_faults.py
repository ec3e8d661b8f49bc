"""One resource fails once, in any verb, anywhere in the order, before or after its work: nothing leaks."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.engine.resources.stubs import AheadStub, Stub, step_of
from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.slot_state import SlotState
from treadle.engine.resources.step import AdmitOutcome, ResourceStep, StepContext
from treadle.errors import EngineError

KEYS = ("first", "middle", "last")
VERBS = ("ingest", "admit", "rollback", "plan", "promote", "clear_preplan", "commit", "remove")
ERRORS = {"an error": EngineError("broken"), "an interrupt": KeyboardInterrupt()}


class Fragile(SlotState):
    """Slots that fail once, before the work of one verb or after it."""

    def __init__(self) -> None:
        super().__init__((1,), slots=2)
        self.fails: tuple[str, str] | None = None
        self.error: BaseException = EngineError("broken")

    @contextmanager
    def failing(self, verb: str) -> Iterator[None]:
        self.fail(verb, "before")
        yield
        self.fail(verb, "after")

    def fail(self, verb: str, moment: str) -> None:
        if self.fails == (verb, moment):
            self.fails = None
            raise self.error

    def ingest(self, rid: str, overrides: object | None) -> None:
        with self.failing("ingest"):
            super().ingest(rid, overrides)

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        with self.failing("admit"):
            return super().admit(step, ctx)

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        with self.failing("rollback"):
            super().rollback(step, ctx)

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:  # type: ignore[override]
        with self.failing("plan"):
            return super().plan(step, ctx)

    def promote(self, step: ResourceStep, ctx: StepContext) -> object:  # type: ignore[override]
        with self.failing("promote"):
            return super().promote(step, ctx)

    def clear_preplan(self) -> None:
        with self.failing("clear_preplan"):
            super().clear_preplan()

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        with self.failing("commit"):
            super().commit(step, ctx)

    def remove(self, rid: str) -> None:
        with self.failing("remove"):
            super().remove(rid)


def live(runner: StepRunner) -> None:
    """All verbs: a step that is staged and runs, one that is staged and dropped, one that is rolled back."""
    runner.ingest_request("r")
    step, other = step_of(*KEYS), step_of(*KEYS)
    try:
        runner.pre_admit(step)
        runner.pre_plan(step)
        runner.admit(step)
        runner.plan(step)
        runner.commit(step)
        runner.pre_admit(other)
        runner.pre_plan(other)
        runner.clear_preplan()
        runner.admit(other)
    finally:
        runner.rollback_admit(other)
        runner.rollback_admit(step)
        runner.remove_request("r")


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("key", KEYS)
def test_whatever_fails_all_comes_back(key: str, verb: str, moment: str, error: BaseException) -> None:
    """An engine goes on with its other requests; what this one held must be theirs."""
    slots = {each: Fragile() for each in KEYS}
    runner = StepRunner(slots)
    fresh: Holdings = slots[key].holdings()
    slots[key].fails, slots[key].error = (verb, moment), error
    with pytest.raises(type(error)) as caught:
        live(runner)
    assert caught.value is error
    # What failed while it was to give back is asked again: each verb is safe to repeat.
    runner.clear_preplan()
    runner.remove_request("r")
    assert [each.holdings() for each in slots.values()] == [fresh] * 3
    assert not runner.staged
    live(runner)
    assert [each.holdings() for each in slots.values()] == [fresh] * 3


def test_a_plan_that_fails_asks_nobody_further() -> None:
    """Who depends on it would plan from what is not there."""
    calls: list[str] = []
    stubs = {"a": Stub("a", calls, raises={"plan": EngineError("broken")}), "b": Stub("b", calls, "a")}
    step = step_of("a", "b")
    with pytest.raises(EngineError, match="broken"):
        StepRunner(stubs).plan(step)
    assert calls == ["plan a"]
    assert step.ctx.plan_results == {}


def test_a_commit_that_fails_asks_nobody_further_and_the_rest_can_be_given_back() -> None:
    """Those that committed keep what they have until the request goes; the others must not hold on."""
    calls: list[str] = []
    stubs = {
        "a": Stub("a", calls),
        "b": Stub("b", calls, raises={"commit": EngineError("broken")}),
        "c": Stub("c", calls),
    }
    runner, step = StepRunner(stubs), step_of("a", "b", "c")
    with pytest.raises(EngineError, match="broken"):
        runner.commit(step)
    runner.rollback_admit(step)
    assert calls == ["commit a", "commit b", "rollback c", "rollback b", "rollback a"]


def test_a_request_that_could_not_be_removed_can_be_opened_anew() -> None:
    """Its removal was tried; what is left of it is found when it is opened, and given back then."""
    calls: list[str] = []
    stub = Stub("a", calls, raises={"remove": EngineError("stuck")})
    runner = StepRunner({"a": stub})
    runner.ingest_request("r")
    with pytest.raises(EngineError, match="stuck"):
        runner.remove_request("r")
    stub.raises = {}
    runner.ingest_request("r")
    assert calls == ["ingest a r", "remove a r", "ingest a r"]


@pytest.mark.parametrize("verb", ["pre_admit", "pre_plan"])
def test_a_stage_that_is_interrupted_is_no_stage(verb: str) -> None:
    """The thread that stages ahead may be stopped at any moment."""
    calls: list[str] = []
    broken = {"pre-admit" if verb == "pre_admit" else "pre-plan": KeyboardInterrupt()}
    runner = StepRunner({"kv": AheadStub("kv", calls), "attn": AheadStub("attn", calls, "kv", raises=broken)})
    with pytest.raises(KeyboardInterrupt):
        getattr(runner, verb)(step_of("kv", "attn"))
    assert not runner.staged
    assert runner.admit(step_of("kv", "attn")).ready


@pytest.mark.parametrize("rid", ["", " ", "a b", "a\nb", "é✓", "../a", "~gate", "0", "\x00", "a" * 10_000])
def test_any_text_is_the_name_of_a_request(rid: str) -> None:
    """Names come from users; to the runner they are keys and nothing else."""
    slots = {key: SlotState((1,), slots=1) for key in KEYS}
    runner, step = StepRunner(slots), step_of(*KEYS, rids=[rid])
    runner.ingest_request(rid)
    assert runner.admit(step).ready
    runner.plan(step)
    runner.commit(step)
    with suppress(EngineError):
        runner.admit(step_of(*KEYS, rids=["nobody"]))
    runner.remove_request(rid)
    assert all(len(each.holdings().free) == 1 for each in slots.values())
