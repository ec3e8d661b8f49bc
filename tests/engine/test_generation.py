"""What a step says of the walks that its rows are in."""

from treadle.engine.generation import Generation, Row, context_of
from treadle.engine.requests import GenerationRequest
from treadle.engine.text import GrowingText


def row(rid: str, start: int, span: int) -> Row:
    """Of a request with a prompt of four tokens and two sampled ones."""
    request, text = GenerationRequest(rid, "", 9), GrowingText(lambda ids: "")
    generation = Generation(rid, request, [5] * 6, 4, 13, frozenset(), text, computed=start)
    return Row(generation, start, span, start + span == 6)


def test_a_step_of_one_kind_of_rows_is_in_one_walk() -> None:
    """Nothing is looked up row by row where there is nothing to tell apart."""
    ctx = context_of((row("a", 5, 1), row("b", 5, 1)))
    assert (ctx.graph_walk, dict(ctx.request_walks), ctx.walk_of("b")) == ("decode", {}, "decode")
    assert context_of((row("a", 0, 3),)).graph_walk == "prefill"


def test_walks_that_are_combined_are_told_row_by_row() -> None:
    """A resource may key what it keeps or publishes on the walk: each request's own, also in a shared step.

    A request that is computed anew after it made room is in `prefill` until it is where it was.
    """
    ctx = context_of((row("decoding", 5, 1), row("new", 0, 4), row("anew", 2, 4)))
    assert ctx.graph_walk is None
    assert [ctx.walk_of(rid) for rid in ctx.request_ids] == ["decode", "prefill", "prefill"]


def test_padding_rows_follow_the_requests() -> None:
    """They fill up a captured shape, and are no requests."""
    ctx = context_of((row("a", 5, 1),), padding=("p0", "p1"), slot=0)
    assert (ctx.request_ids, ctx.padding_ids, ctx.slot) == (("a",), ("p0", "p1"), 0)
