"""What the resources of a node agree on about a prefix that is stored already."""

import pytest

from tests.engine.resources.stubs import PrefixStub, Stub
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import CachedPrefix
from treadle.errors import EngineError, UnknownNameError

INPUTS = [7, 8, 9, 10]


def built(*opinions: CachedPrefix | None) -> tuple[StepRunner, list[str]]:
    calls: list[str] = []
    stubs: dict[str, Stub] = {"attn": Stub("attn", calls)}
    for key, opinion in zip("abc", opinions, strict=False):
        stubs[key] = stub = PrefixStub(key, calls)
        stub.opinion = opinion
    return StepRunner(stubs, {"node": tuple(stubs), "bare": ["attn"]}), calls


def resolved(*opinions: CachedPrefix | None) -> CachedPrefix | None:
    return built(*opinions)[0].resolve_cached_prefix("r", "node", "prefill", INPUTS)


def test_the_smallest_answer_wins() -> None:
    """A step is one span: who holds less must be caught up by the tokens that run."""
    assert resolved(CachedPrefix(3), CachedPrefix(1), CachedPrefix(2)) == CachedPrefix(1)


def test_no_opinion_is_not_an_answer_of_0() -> None:
    """The sampler holds no prefix, and must not forbid one."""
    assert resolved(None, CachedPrefix(3), None) == CachedPrefix(3)
    assert resolved(CachedPrefix(3), CachedPrefix(0)) == CachedPrefix(0)


def test_nobody_with_an_opinion_is_no_answer() -> None:
    """The caller then says nothing to the resources about a prefix."""
    assert resolved(None, None) is None
    assert resolved() is None


def test_a_walk_is_served_whole_when_all_say_so() -> None:
    """A walk that does not run leaves behind whoever had to be caught up."""
    assert resolved(CachedPrefix(4, whole=True), CachedPrefix(4, whole=True)) == CachedPrefix(4, whole=True)
    assert resolved(CachedPrefix(4, whole=True), CachedPrefix(2)) == CachedPrefix(2)
    assert resolved(CachedPrefix(4, whole=True), None) == CachedPrefix(4, whole=True)


@pytest.mark.parametrize("length", [-1, 5])
def test_an_answer_beyond_the_walk_is_an_error(length: int) -> None:
    """The step would begin outside of its inputs; the resource at fault is named."""
    with pytest.raises(EngineError, match=f"'b' serves {length} tokens of request 'r'.*'prefill' has 4"):
        resolved(CachedPrefix(1), CachedPrefix(length))


def test_everyone_is_asked_with_the_untrimmed_inputs() -> None:
    """A prefix is matched from the beginning."""
    runner, calls = built(None, CachedPrefix(2))
    runner.resolve_cached_prefix("r", "node", "prefill", INPUTS)
    assert calls == ["resolve a r node prefill [7, 8, 9, 10]", "resolve b r node prefill [7, 8, 9, 10]"]


def test_the_agreed_prefix_goes_to_all_with_the_untrimmed_inputs() -> None:
    """Also to those without an opinion: a repetition penalty counts tokens that nobody computes."""
    runner, calls = built(None, CachedPrefix(2))
    runner.apply_cached_prefix("r", "node", "prefill", INPUTS, CachedPrefix(2))
    assert calls == ["apply a r node prefill [7, 8, 9, 10] 2", "apply b r node prefill [7, 8, 9, 10] 2"]


def test_all_are_told_of_a_walk_that_was_served_whole() -> None:
    """It does not run, so no commit would tell them."""
    runner, calls = built(None, CachedPrefix(4, whole=True))
    runner.complete_cached_walk("r", "node", "image")
    assert calls == ["complete a r node image", "complete b r node image"]


def test_prefixes_are_scoped_to_the_node() -> None:
    """Another node's cache holds another model's keys."""
    runner, calls = built(CachedPrefix(2))
    assert runner.resolve_cached_prefix("r", "bare", "prefill", INPUTS) is None
    runner.apply_cached_prefix("r", "bare", "prefill", INPUTS, CachedPrefix(2))
    runner.complete_cached_walk("r", "bare", "prefill")
    assert calls == []
    with pytest.raises(UnknownNameError, match=r"stranger.*bare.*node"):
        runner.resolve_cached_prefix("r", "stranger", "prefill", INPUTS)
