"""Prefixes of several walks that are one text, and those that a leader tells its followers."""

from collections.abc import Sequence

import pytest

from tests.engine.resources.prefix_bench import PROMPT, Bench
from treadle.engine.resources.prefix_layout import PrefixLayout, PrefixSpan
from treadle.engine.resources.step import CachedPrefix, Refusal, ResourceStep, Segment, SubmoduleStep
from treadle.errors import ArgumentError, EngineError


def layout(*spans: tuple[str, Sequence[int], bool]) -> PrefixLayout:
    return PrefixLayout(tuple(PrefixSpan(walk, tuple(tokens), cut) for walk, tokens, cut in spans))


TEXT, IMAGE, QUESTION = PROMPT[:20], [1000 + at for at in range(30)], PROMPT[50:75]
WALKS = layout(("text", TEXT, True), ("image", IMAGE, False), ("text", QUESTION, True))


def test_the_walks_of_a_layout_are_served_their_parts(bench: Bench) -> None:
    """Twenty, thirty and fourteen of seventy-five slots, from four pages; the last walk writes eleven."""
    bench.prefill("a", [*TEXT, *IMAGE, *QUESTION])
    bench.open("b", WALKS)
    assert bench.apply("b", TEXT, "text") == CachedPrefix(20, whole=True)
    assert bench.cache.ledger.stream("b").stored == 20
    assert bench.apply("b", IMAGE, "image") == CachedPrefix(30, whole=True)
    assert bench.apply("b", QUESTION, "text") == CachedPrefix(14)
    plan = bench.run("b", 11)
    assert plan.rows[0].start == 64
    assert bench.cache.ledger.stream("b").stored == 75
    assert bench.pages("b")[:4] == bench.pages("a")[:4]
    assert bench.cache.layer(0)[0][0, bench.pages("b")[1]].flatten().tolist() == list(range(17, 33))


def test_pages_cached_after_the_layout_was_told_are_not_picked_up(bench: Bench) -> None:
    """What a request gets is settled when it comes in, and does not depend on when it is asked."""
    bench.open("b", WALKS)
    bench.prefill("a", [*TEXT, *IMAGE, *QUESTION])
    assert bench.apply("b", TEXT, "text") is None
    bench.run("b", 20)
    assert bench.apply("b", IMAGE, "image") is None


@pytest.mark.parametrize("next_walk", [("image", IMAGE[:29]), ("text", IMAGE)])
def test_a_walk_that_disagrees_ends_the_chain_and_keeps_what_was_served(
    bench: Bench, next_walk: tuple[str, list[int]]
) -> None:
    """The layout was wrong from here on, and right up to here."""
    spans = layout(("text", PROMPT[:32], True), ("image", IMAGE, True))
    bench.prefill("a", [*PROMPT[:32], *IMAGE])
    bench.open("b", spans)
    assert bench.apply("b", PROMPT[:32], "text") == CachedPrefix(32, whole=True)
    assert bench.apply("b", next_walk[1], next_walk[0]) is None
    assert bench.lease("b") == []
    assert bench.cache.ledger.stream("b").stored == 32
    assert bench.pages("b") == bench.pages("a")[:2]
    bench.run("b", 30)


def test_a_walk_that_cannot_be_cut_is_served_whole_or_not_at_all(bench: Bench) -> None:
    """Half an image cannot be computed."""
    spans = layout(("text", PROMPT[:32], True), ("image", IMAGE, False))
    bench.prefill("a", [*PROMPT[:32], *IMAGE])
    bench.open("b", spans)
    assert bench.apply("b", PROMPT[:32], "text") == CachedPrefix(32, whole=True)
    assert bench.apply("b", IMAGE, "image") is None
    assert (bench.lease("b"), bench.cache.ledger.stream("b").stored) == ([], 32)


def test_a_walk_that_disagrees_behind_a_part_of_a_page_is_an_error(bench: Bench) -> None:
    """What it stores would go into a page that others read."""
    bench.prefill("a", [*TEXT, *IMAGE, *QUESTION])
    bench.open("b", WALKS)
    bench.apply("b", TEXT, "text")
    with pytest.raises(RuntimeError, match="served 20 tokens, which end inside a cached page"):
        bench.ask("b", IMAGE[:-1], "image")


def test_a_layout_comes_through_a_message_as_it_was() -> None:
    """Both ends must hash the same numbers."""
    assert PrefixLayout.from_wire(WALKS.to_wire()) == WALKS
    with pytest.raises(ArgumentError, match="a prefix layout is a list"):
        PrefixLayout.from_wire([{"graph_walk": "text"}])


def test_a_follower_holds_the_pages_of_the_leader() -> None:
    """Ranks in lock-step allocate alike, so the page numbers are the same on all."""
    leader, follower = Bench(), Bench()
    for each in (leader, follower):
        each.prefill("a", PROMPT)
        each.open("b")
    assert leader.apply("b", PROMPT) == CachedPrefix(96)
    leases = leader.runner.lease_cached_prefix("b", "node", "walk")
    assert leases == {"kv": leader.pages("a")[:6]}
    for _ in range(2):
        assert follower.runner.adopt_cached_prefix("b", "node", "walk", leases, caught_up=True)
    follower.runner.apply_cached_prefix("b", "node", "walk", PROMPT, CachedPrefix(96))
    for each in (leader, follower):
        each.run("b", 4)
        each.runner.check_integrity()
    assert leader.pages("b") == follower.pages("b")
    assert leader.runner.page_trails("node") == follower.runner.page_trails("node")


def test_a_follower_that_is_behind_says_so_and_one_that_is_not_is_wrong() -> None:
    """It may still have to run a step of the leader's; when it has run them all, the ranks went apart."""
    follower = Bench()
    follower.open("b")
    assert not follower.runner.adopt_cached_prefix("b", "node", "walk", {"kv": [3, 4]}, caught_up=False)
    assert follower.lease("b") == []
    with pytest.raises(EngineError, match="do not allocate alike"):
        follower.runner.adopt_cached_prefix("b", "node", "walk", {"kv": [3, 4]}, caught_up=True)


def test_a_request_that_is_away_does_not_take_its_lease_over() -> None:
    """Its pages come back first, and then what follows them."""
    bench = Bench(host_pages=4)
    bench.prefill("a", [*TEXT, *IMAGE, *QUESTION])
    bench.open("b", WALKS)
    bench.apply("b", TEXT, "text")
    lease = bench.lease("b")
    assert bench.cache.can_offload("b")
    bench.cache.offload("b")
    assert bench.ask("b", IMAGE, "image") is None
    outcome = bench.runner.admit(SubmoduleStep({"kv": ResourceStep()}, (Segment("b", 30),)))
    assert (outcome.ok, outcome.reason) == (False, Refusal.OFFLOADING)
    assert bench.lease("b") == lease
    bench.cache.reload("b")
    assert bench.apply("b", IMAGE, "image") == CachedPrefix(30, whole=True)
    bench.runner.check_integrity()


def test_the_lease_of_a_request_that_is_away_can_be_released() -> None:
    """A walk that will not run gives back what was held for it, wherever the request's own pages are."""
    bench = Bench(host_pages=4)
    bench.prefill("a", [*TEXT, *IMAGE, *QUESTION])
    bench.open("b", WALKS)
    bench.apply("b", TEXT, "text")
    leased = bench.lease("b")
    before = bench.owners(leased)
    bench.cache.offload("b")
    bench.runner.release_cached_prefix("b", "node", "image")
    assert bench.lease("b") == []
    assert bench.owners(leased) == [count - 1 for count in before]
    bench.cache.reload("b")
    bench.runner.remove_request("b")
    bench.runner.check_integrity()
