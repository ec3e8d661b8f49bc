"""The page accounts: by hand, and by random sequences of everything that may happen to them."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from treadle.engine.resources.pages import Fork, PageLedger
from treadle.engine.resources.step import Segment
from treadle.errors import ArgumentError, EngineError


def test_a_page_is_taken_only_when_the_last_is_full() -> None:
    """Sixteen tokens share a page: one page a token would hold a sixteenth of the requests."""
    ledger = PageLedger(4, 16)
    ledger.open("a", 0)
    for span, owned in ((16, 1), (1, 2), (15, 2), (1, 3)):
        ledger.take([Segment("a", span)])
        ledger.store([Segment("a", span)])
        assert len(ledger.stream("a", "main").pages) == owned
    ledger.check_integrity()


def test_a_zero_span_takes_no_page() -> None:
    """Padding rows fill a fixed shape and own nothing."""
    ledger = PageLedger(1, 16)
    ledger.open("pad", 0)
    assert ledger.can_take([Segment("pad", 0)])
    ledger.take([Segment("pad", 0)])
    assert ledger.free == (0,)


def test_giving_back_restores_the_free_list() -> None:
    """The next owner must get the same pages as if the step had never been tried."""
    ledger = PageLedger(8, 4)
    ledger.open("a", 0)
    ledger.open("b", 0)
    before = ledger.free
    step = [Segment("a", 9), Segment("b", 5)]
    ledger.take(step)
    ledger.give_back(step)
    assert ledger.free == before


def test_a_promise_is_kept_against_newcomers() -> None:
    """Admission that promises more than decoding can carry ends in a stall."""
    ledger = PageLedger(4, 4)
    ledger.open("a", 12)
    ledger.open("b", 0)
    assert not ledger.can_promise(8)
    assert not ledger.can_take([Segment("b", 8)])
    assert ledger.can_take([Segment("b", 4)])
    ledger.take([Segment("b", 4)])
    assert ledger.can_take([Segment("a", 12)])
    assert not ledger.can_take([Segment("a", 13)])


def test_a_promise_that_cannot_be_kept_is_refused() -> None:
    """Better no request than one that gets stuck half way."""
    ledger = PageLedger(2, 4)
    with pytest.raises(EngineError, match="asks for 3 pages, 2 of 2"):
        ledger.open("a", 9)
    ledger.check_integrity()
    assert len(ledger.free) == 2


def test_an_unknown_request_is_named() -> None:
    """A step for a request that is gone is a bug of whoever declared it."""
    with pytest.raises(EngineError, match="'ghost' is not open"):
        PageLedger(2, 4).take([Segment("ghost", 1)])


def test_what_took_no_pages_is_not_stored() -> None:
    """Committed twice, or behind a request that came anew, tokens would count that stand nowhere."""
    ledger = PageLedger(2, 4)
    for rid in "ab":
        ledger.open(rid, 0)
    ledger.take([Segment("a", 3)])
    with pytest.raises(EngineError, match=r"1 tokens of request 'b'.*commit it once"):
        ledger.store([Segment("a", 3), Segment("b", 1)])
    assert ledger.stream("a").stored == 0
    ledger.store([Segment("a", 3), Segment("b", 0)])
    with pytest.raises(EngineError, match="3 tokens of request 'a'"):
        ledger.store([Segment("a", 3)])
    ledger.check_integrity()


def test_a_refused_step_has_no_part_in_the_order_of_the_streams() -> None:
    """Ranks that refused other steps would else free the same pages in another order."""
    free = []
    for refused in ([], [Segment("a", 100)]):
        ledger = PageLedger(4, 1)
        ledger.open("a", 0)
        ledger.can_take(refused)
        for label in ("left", "main"):
            step = [Segment("a", 2, label)]
            ledger.take(step)
            ledger.store(step)
        ledger.close("a")
        free.append(ledger.free)
    assert free[0] == free[1]


def test_opening_twice_is_refused() -> None:
    """The second opening would orphan the pages of the first."""
    ledger = PageLedger(2, 4)
    ledger.open("a", 0)
    with pytest.raises(EngineError, match="open already"):
        ledger.open("a", 0)


def test_a_pool_without_pages_is_refused() -> None:
    """It could never admit anything."""
    with pytest.raises(ArgumentError):
        PageLedger(0, 16)


def test_integrity_names_a_page_that_is_owned_twice() -> None:
    """A proof that cannot fail proves nothing."""
    ledger = PageLedger(3, 4)
    ledger.open("a", 0)
    ledger.stream("a", "main").pages.append(0)
    with pytest.raises(EngineError, match=r"counted wrong: \{0: '0 counted, 1 found'\}"):
        ledger.check_integrity()


def filled(ledger: PageLedger, rid: str, span: int, label: str = "main") -> list[int]:
    """The pages of a stream after a step of so many tokens."""
    step = [Segment(rid, span, label)]
    assert ledger.can_take(step)
    ledger.take(step)
    ledger.store(step)
    return ledger.stream(rid, label).pages.tolist()


def test_a_fork_shares_full_pages_and_copies_the_half_one_when_it_is_written() -> None:
    """A common beginning is stored once, however many go on from it."""
    ledger = PageLedger(8, 4)
    ledger.open("a", 0)
    first, half = filled(ledger, "a", 6)
    ledger.fork([Fork("a", "b")])
    ledger.settle([Fork("a", "b")])
    assert ledger.stream("a", "b").pages.tolist() == [first, half]
    assert len(ledger.free) == 6
    step = [Segment("a", 1, "b")]
    fresh = ledger.take(step)
    assert fresh.copies == [(half, fresh.pages[0])]
    ledger.store(step)
    assert ledger.stream("a", "b").pages.tolist() == [first, fresh.pages[0]]
    # The other one owns the half page alone now, and writes where it stands.
    assert filled(ledger, "a", 1) == [first, half]
    ledger.check_integrity()


def test_a_copy_that_is_rolled_back_leaves_the_shared_page_shared() -> None:
    """The step did not happen, so nobody has a page of its own."""
    ledger = PageLedger(8, 4)
    ledger.open("a", 0)
    pages = filled(ledger, "a", 6)
    ledger.fork([Fork("a", "b")])
    ledger.settle([Fork("a", "b")])
    before, step = ledger.free, [Segment("a", 5), Segment("a", 3, "b")]
    ledger.take(step)
    ledger.give_back(step)
    assert ledger.free == before
    assert ledger.stream("a").pages.tolist() == ledger.stream("a", "b").pages.tolist() == pages
    ledger.check_integrity()


def test_a_fork_into_another_request_outlives_the_first() -> None:
    """Several answers to one prompt are several requests, and end when they end."""
    ledger = PageLedger(4, 4)
    for rid in "ab":
        ledger.open(rid, 0)
    pages = filled(ledger, "a", 8)
    fork = Fork("a", "main", to_request="b")
    ledger.fork([fork])
    ledger.settle([fork])
    ledger.close("a")
    assert ledger.stream("b").pages.tolist() == pages
    ledger.check_integrity()
    ledger.close("b")
    assert len(ledger.free) == 4


def test_a_fork_over_a_stream_that_has_tokens_is_refused() -> None:
    """Its own tokens would be lost without a word."""
    ledger = PageLedger(4, 4)
    ledger.open("a", 0)
    filled(ledger, "a", 4)
    filled(ledger, "a", 1, "b")
    for fork in (Fork("a", "b"), Fork("a", "main")):
        with pytest.raises(EngineError, match="has tokens already"):
            ledger.fork([fork])


def test_pages_behind_the_window_are_given_back() -> None:
    """A token that looks back five, itself included, needs no page that ends six before it."""
    ledger = PageLedger(4, 2, window=5)
    ledger.open("a", 0)
    first, second, third = filled(ledger, "a", 5)
    assert ledger.stream("a").gone == 0  # the sixth token sees the second one still
    assert filled(ledger, "a", 1) == [second, third]
    assert ledger.free[-1] == first
    for _ in range(20):
        filled(ledger, "a", 1)
        ledger.check_integrity()
        assert len(ledger.stream("a").pages) <= 3


def test_a_window_without_a_token_is_refused() -> None:
    """Nothing could be looked at."""
    with pytest.raises(ArgumentError, match="window"):
        PageLedger(4, 2, window=0)


RIDS = st.sampled_from("abcde")


class LedgerMachine(RuleBasedStateMachine):
    """Nothing leaks, nothing is owned twice, a refusal changes nothing, a promise is always kept."""

    @initialize(total=st.integers(1, 12), page_size=st.integers(1, 5))
    def build(self, total: int, page_size: int) -> None:
        self.ledger = PageLedger(total, page_size)
        self.promised: dict[str, int] = {}
        self.stored: dict[tuple[str, str], int] = {}
        self.step: list[Segment] = []
        self.before: tuple[int, ...] = ()

    @rule(rid=RIDS, tokens=st.integers(0, 30))
    def open(self, rid: str, tokens: int) -> None:
        before = self.ledger.free
        if rid in self.promised or not self.ledger.can_promise(tokens):
            with pytest.raises(EngineError):
                self.ledger.open(rid, tokens)
        else:
            self.ledger.open(rid, tokens)
            self.promised[rid] = tokens
        assert self.ledger.free == before

    @precondition(lambda self: not self.step and self.promised)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        names = st.tuples(st.sampled_from(sorted(self.promised)), st.sampled_from(["main", "fork"]))
        chosen = data.draw(st.lists(names, min_size=1, unique=True))
        step = [Segment(rid, data.draw(st.integers(0, 9)), label) for rid, label in chosen]
        self.before = self.ledger.free
        if self.ledger.can_take(step):
            self.ledger.take(step)
            self.step = step
        assert self.step or self.ledger.free == self.before

    @precondition(lambda self: self.step)
    @rule()
    def take_again(self) -> None:
        taken = self.ledger.free
        assert self.ledger.can_take(self.step)
        self.ledger.take(self.step)
        assert self.ledger.free == taken

    @precondition(lambda self: self.step)
    @rule(removed=st.booleans(), data=st.data())
    def give_back(self, removed: bool, data: st.DataObject) -> None:
        if removed:
            self.close(data.draw(st.sampled_from(sorted({each.request_id for each in self.step}))))
        intact = all(each.request_id in self.promised for each in self.step)
        self.ledger.give_back(self.step)
        assert not intact or self.ledger.free == self.before
        self.step = []

    @precondition(lambda self: self.step)
    @rule()
    def store(self) -> None:
        alive = [each for each in self.step if each.request_id in self.promised]
        self.ledger.store(alive)
        for rid, span, label in alive:
            self.stored[rid, label] = self.stored.get((rid, label), 0) + span
        self.step = []
        free = self.ledger.free
        self.ledger.give_back(alive)
        assert self.ledger.free == free

    @precondition(lambda self: not self.step)
    @rule(rid=RIDS)
    def close(self, rid: str) -> None:
        self.ledger.close(rid)
        self.promised.pop(rid, None)
        self.stored = {key: count for key, count in self.stored.items() if key[0] != rid}

    @precondition(lambda self: not self.step)
    @rule(rid=RIDS)
    def a_promised_request_can_go_to_its_end(self, rid: str) -> None:
        if rid not in self.promised or any(key[0] == rid and key[1] == "fork" for key in self.stored):
            return
        left = self.promised[rid] - self.stored.get((rid, "main"), 0)
        assert left <= 0 or self.ledger.can_take([Segment(rid, left)])

    @invariant()
    def sums_hold(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.check_integrity()
            for (rid, label), count in self.stored.items():
                assert self.ledger.stream(rid, label).stored == count
            assert self.promised or len(self.ledger.free) == self.ledger.total


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
