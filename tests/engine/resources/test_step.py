"""The envelopes of a step."""

import pytest

from treadle.engine.resources.kv_step import KvStep
from treadle.engine.resources.pages import Fork
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


def test_without_padding_the_padded_requests_are_the_requests() -> None:
    """Who addresses rows need not ask whether the step has a fixed shape."""
    ctx = StepContext(request_ids=("a", "b"))
    assert ctx.padded_request_ids == ("a", "b")
    assert ctx.padding_ids == ()


def test_padding_rows_follow_the_requests() -> None:
    """Row numbers of requests are the same with and without padding."""
    ctx = StepContext(request_ids=("a",), padded_request_ids=("a", "pad 0", "pad 1"))
    assert ctx.padding_ids == ("pad 0", "pad 1")
    with pytest.raises(EngineError, match=r"expected \('a',\) first, got \('pad 0', 'a'\)"):
        StepContext(request_ids=("a",), padded_request_ids=("pad 0", "a"))


def test_each_request_has_its_own_walk_or_that_of_the_step() -> None:
    """Prefill and decode rows run in one step."""
    ctx = StepContext(graph_walk="decode", request_walks={"a": "prefill"})
    assert (ctx.walk_of("a"), ctx.walk_of("b")) == ("prefill", "decode")
    assert StepContext().walk_of("a") is None


@pytest.mark.parametrize("own", [None, (Segment("a", 1), Segment("a", 2))])
def test_a_stream_has_one_segment(own: tuple[Segment, ...] | None) -> None:
    """Each alone would fit the last page, or get a slot; together they would write over each other."""
    batch = (Segment("a", 3), Segment("a", 1)) if own is None else BATCH
    with pytest.raises(EngineError, match=r"one segment for a stream at most.*'a'"):
        SubmoduleStep({"kv": ResourceStep(own)}, batch)
    SubmoduleStep({"kv": ResourceStep()}, (Segment("a", 3), Segment("a", 3, "fork")))


def test_a_span_is_not_below_0() -> None:
    """It would take stored tokens away, which no resource can see coming."""
    with pytest.raises(EngineError, match=r"0 or more tokens.*-1"):
        SubmoduleStep({}, (Segment("a", -1),))


def test_a_part_names_all_its_requests() -> None:
    """Who drops a stage when a request goes must know those that are forked, too."""
    assert ResourceStep(BATCH).request_ids == {"a", "b"}
    forks = KvStep(BATCH, (Fork("c", "left"),), (Fork("a", "left", to_request="d"),))
    assert forks.request_ids == {"a", "b", "c", "d"}
