"""Prefixes of the KV cache, by the runner's verbs: found, held, taken over, made."""

from collections.abc import Callable, Sequence

import pytest

from tests.engine.resources.prefix_bench import PAGE, PROMPT, Bench
from treadle.engine.resources import prefix_index
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_step import KvStep
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.prefix_layout import PrefixLayout, PrefixSpan
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import (
    CachedPrefix,
    Refusal,
    ResourceStep,
    Segment,
    SubmoduleStep,
)
from treadle.errors import ArgumentError, EngineError


@pytest.mark.parametrize(("length", "cached"), [(100, 96), (96, 80), (17, 16)])
def test_full_pages_match_and_never_the_last_token(bench: Bench, length: int, cached: int) -> None:
    """The scores of the last token are wanted, so it has to run."""
    assert bench.prefill("a", PROMPT[:length]) is None
    assert bench.prefill("b", PROMPT[:length]) == CachedPrefix(cached)
    assert bench.pages("b")[: cached // PAGE] == bench.pages("a")[: cached // PAGE]
    assert bench.cache.ledger.stream("b").stored == length


@pytest.mark.parametrize("other", [[], [1], PROMPT[:16], [7, *PROMPT]])
def test_a_prompt_that_shares_nothing_gets_no_answer_and_no_lease(bench: Bench, other: list[int]) -> None:
    """Not even the sixteen first tokens, when they are all there are."""
    bench.prefill("a", PROMPT)
    bench.open("b")
    assert bench.ask("b", other) is None
    assert bench.lease("b") == []


def test_a_lease_that_is_never_taken_over_is_given_back(bench: Bench) -> None:
    """A request that is removed, or whose walk does not run, holds nothing any more."""
    bench.prefill("a", PROMPT)
    shared = bench.pages("a")[:6]
    before = bench.owners(shared)
    ends: list[Callable[[], None]] = [
        lambda: bench.runner.remove_request("b"),
        lambda: bench.runner.release_cached_prefix("b", "node", "walk"),
    ]
    for end in ends:
        bench.open("b")
        assert bench.ask("b", PROMPT) == bench.ask("b", PROMPT) == CachedPrefix(96)
        assert bench.lease("b") == shared
        assert bench.owners(shared) == [count + 1 for count in before], "held once, however often asked"
        end()
        assert bench.owners(shared) == before
        assert bench.lease("b") == []
        bench.runner.remove_request("b")


def test_less_is_held_when_less_was_agreed_on(bench: Bench) -> None:
    """Another resource may have less: what is beyond is somebody else's."""
    bench.prefill("a", PROMPT)
    bench.open("b")
    assert bench.ask("b", PROMPT) == CachedPrefix(96)
    bench.runner.apply_cached_prefix("b", "node", "walk", PROMPT, CachedPrefix(40))
    assert bench.lease("b") == bench.pages("a")[:3]
    plan = bench.run("b", 60)
    # Token 40 goes into a page that is shared, so it goes into a copy of it.
    assert plan.rows[0].start == 40
    assert bench.pages("b")[:2] == bench.pages("a")[:2]
    assert not set(bench.pages("b")[2:]) & set(bench.pages("a"))


def test_more_than_is_held_cannot_be_agreed_on(bench: Bench) -> None:
    """Tokens would be skipped that nobody stored."""
    bench.open("a")
    with pytest.raises(EngineError, match="32 tokens of request 'a' were agreed on, the KV cache holds 0"):
        bench.runner.apply_cached_prefix("a", "node", "walk", PROMPT, CachedPrefix(32))


def test_a_refusal_keeps_the_lease_and_the_retry_gets_the_same_pages() -> None:
    """No room is ordinary; what was agreed on stays."""
    bench = Bench(pages=9)
    bench.prefill("a", PROMPT)
    bench.open("c")
    bench.run("c", 20)
    bench.open("b")
    assert bench.apply("b", PROMPT) == CachedPrefix(96)
    lease = bench.lease("b")
    step = SubmoduleStep({"kv": ResourceStep()}, (Segment("b", 4),))
    outcome = bench.runner.admit(step)
    assert (outcome.ok, outcome.reason) == (False, Refusal.ALLOCATION_FAILED)
    assert bench.lease("b") == lease
    bench.runner.remove_request("c")
    assert bench.run("b", 4).rows[0].start == 96
    assert bench.pages("b")[:6] == lease
    assert bench.lease("b") == []
    assert bench.cache.ledger.stream("b").stored == 100
    bench.runner.check_integrity()


def test_a_rollback_gives_the_lease_back_to_the_request(bench: Bench) -> None:
    """The step did not run, so its pages are held as before."""
    bench.prefill("a", PROMPT)
    bench.open("b")
    bench.apply("b", PROMPT)
    lease, free = bench.lease("b"), bench.cache.ledger.free
    step = SubmoduleStep({"kv": ResourceStep()}, (Segment("b", 4),))
    assert bench.runner.admit(step).ok
    assert bench.lease("b") == []
    bench.runner.rollback_admit(step)
    assert (bench.lease("b"), bench.pages("b"), bench.cache.ledger.free) == (lease, [], free)


def test_a_fork_before_the_step_of_a_leased_stream_has_the_whole_prefix(bench: Bench) -> None:
    """What is held and not taken over is stored all the same."""
    bench.prefill("a", PROMPT)
    bench.open("b")
    bench.apply("b", PROMPT)
    fork = KvStep(before=(Fork("b", "branch"),))
    step = SubmoduleStep({"kv": fork}, (Segment("b", 4), Segment("b", 4, "branch")))
    assert bench.runner.admit(step).ok
    bench.runner.plan(step)
    bench.runner.commit(step)
    branch = bench.cache.ledger.stream("b", "branch")
    assert branch.stored == 100
    assert branch.pages[:6] == bench.cache.ledger.stream("b").pages[:6]
    assert branch.pages[6] != bench.cache.ledger.stream("b").pages[6]


def test_no_key_is_hashed_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing a long prompt takes as long as a step: others would wait for it."""
    bench, key = Bench(), prefix_index.page_key
    assert bench.cache.prefixes is not None
    lock, hashed = bench.cache.prefixes.index.lock, []

    def watched(before: bytes, tokens: Sequence[int]) -> bytes:
        assert not lock.locked()
        hashed.append(before)
        return key(before, tokens)

    monkeypatch.setattr(prefix_index, "page_key", watched)
    bench.prefill("a", PROMPT)
    bench.open("b", PrefixLayout((PrefixSpan("walk", tuple(PROMPT)),)))
    assert len(hashed) == 12
    # Asked again: nothing is hashed twice.
    bench.open("c")
    for _ in range(3):
        assert bench.ask("c", [5] * 40) is None
    assert len(hashed) == 14


def test_a_missed_probe_finds_what_was_cached_meanwhile(bench: Bench) -> None:
    """Two requests with one prompt came at once: the second waited, and need not compute it."""
    bench.open("b")
    assert bench.ask("b", PROMPT) is None
    bench.prefill("a", PROMPT)
    assert bench.ask("b", PROMPT) == CachedPrefix(96)


def test_another_text_in_the_same_slots_gets_nothing_of_the_first(bench: Bench) -> None:
    """An image is slots with numbers for its content: another image, other numbers, other pages."""
    image, other = [1000 + at for at in range(32)], [2000 + at for at in range(32)]
    bench.prefill("a", [*PROMPT[:16], *image, *PROMPT[:10]])
    assert bench.prefill("b", [*PROMPT[:16], *other, *PROMPT[:10]]) == CachedPrefix(16)
    assert bench.prefill("c", [*PROMPT[:16], *image, *PROMPT[:20]]) == CachedPrefix(48)
    bench.open("d")
    assert bench.ask("d", [*PROMPT[:16], *other, *PROMPT[:10]]) == CachedPrefix(48)
    # The same request asked about another text: what was held for the first one is not served.
    assert bench.ask("d", [*PROMPT[:16], *image, *PROMPT[:10]]) == CachedPrefix(48)
    assert bench.lease("d") == bench.pages("a")[:3]


@pytest.mark.parametrize("lazy_keys", [1, 5, 1000])
@pytest.mark.parametrize("batch", [False, True])
def test_generated_tokens_are_a_prefix_of_the_next_turn(lazy_keys: int, batch: bool) -> None:
    """One by one or per batch, early or late: after the request all its full pages match."""
    bench, text = Bench(lazy_keys=lazy_keys), list(range(70))
    assert bench.runner.prefix_chain_keys("node") == []
    bench.prefill("a", text[:20])
    for at in range(20, 70):
        # The step sampled this token, and the next one stores it.
        keys = bench.runner.prefix_chain_keys("node")
        assert keys == ["kv"]
        if batch:
            bench.runner.extend_prefix_chains_batch(["a"], "node", "walk", [[text[at]]], {}, keys)
        else:
            bench.runner.extend_prefix_chains("a", "node", "walk", [text[at]])
        bench.run("a", 1)
    pages = bench.pages("a")
    bench.runner.remove_request("a")
    assert bench.runner.prefix_chain_keys("node") == []
    bench.open("b")
    assert bench.ask("b", [*text, 5]) == CachedPrefix(64)
    assert bench.lease("b") == pages[:4]


def test_tokens_that_nobody_named_end_the_chain(bench: Bench) -> None:
    """A page of unknown tokens has no key; the pages before it keep theirs."""
    bench.prefill("a", PROMPT[:40])
    bench.run("a", 60)
    bench.runner.extend_prefix_chains("a", "node", "walk", PROMPT[40:80])
    bench.run("a", 1)
    bench.open("b")
    assert bench.ask("b", PROMPT) == CachedPrefix(32)


def test_idle_pages_are_room_for_whoever_needs_them() -> None:
    """A cache that is full of yesterday's prompts must not refuse today's."""
    bench = Bench(pages=8)
    bench.prefill("a", PROMPT)
    bench.runner.remove_request("a")
    assert len(bench.cache.ledger.free) == 2
    bench.open("b", tokens=8 * PAGE)
    bench.run("b", 8 * PAGE)
    bench.runner.check_integrity()
    bench.runner.remove_request("b")
    bench.open("c")
    assert bench.ask("c", PROMPT) is None


def test_a_lease_breaks_no_promise() -> None:
    """Idle pages count as room; one that is held for a newcomer must not be missed by an older request."""
    bench = Bench(pages=7)
    bench.prefill("a", PROMPT)
    bench.runner.remove_request("a")
    bench.open("old", tokens=5 * PAGE)
    bench.open("new")
    assert bench.ask("new", PROMPT) == CachedPrefix(2 * PAGE)
    bench.runner.check_integrity()
    bench.run("old", 5 * PAGE)
    bench.runner.check_integrity()


def test_a_lease_that_is_given_back_breaks_no_promise() -> None:
    """It stood for a page that was promised, and the room for that went to somebody else meanwhile."""
    bench = Bench(pages=10)
    bench.prefill("a", PROMPT[:17])
    bench.open("b", tokens=5 * PAGE)
    assert bench.ask("b", PROMPT) == CachedPrefix(PAGE)
    bench.open("c", tokens=4 * PAGE)
    bench.runner.release_cached_prefix("b", "node", "walk")
    bench.runner.check_integrity()
    bench.run("c", 4 * PAGE)
    bench.run("b", 4 * PAGE)
    bench.runner.check_integrity()


def test_a_promise_covers_what_the_lease_brings() -> None:
    """A whole pool of cached pages serves the request that was promised the whole pool."""
    bench = Bench(pages=7)
    bench.prefill("a", PROMPT)
    bench.runner.remove_request("a")
    bench.open("b", tokens=7 * PAGE)
    assert bench.apply("b", PROMPT) == CachedPrefix(96)
    bench.run("b", 16)
    bench.runner.check_integrity()


def test_without_a_prefix_cache_there_is_no_opinion() -> None:
    """Then nothing is kept, and nothing is asked of the steps."""
    cache = PagedKvCache(KvShape(1, 1, 1), 4, PAGE)
    runner = StepRunner({"kv": cache}, {"node": ["kv"]})
    runner.ingest_request("a")
    assert runner.resolve_cached_prefix("a", "node", "walk", PROMPT) is None
    with pytest.raises(EngineError, match="keeps no prefixes"):
        runner.apply_cached_prefix("a", "node", "walk", PROMPT, CachedPrefix(16))
    assert runner.prefix_chain_keys("node") == []
    with pytest.raises(ArgumentError, match="window"):
        PagedKvCache(KvShape(1, 1, 1), 4, PAGE, window=8, prefix_cache=True)
