"""Captured steps of the KV cache: static buffers, and padding rows that decode into a page nobody owns."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import DecodeRows, KvPlan
from treadle.engine.resources.kv_step import KvClaim
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.protocols import Capturing
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.sampler import Sampler
from treadle.engine.resources.step import ResourceStep, Segment, StepContext, SubmoduleStep
from treadle.errors import ArgumentError, EngineError
from treadle.testing.resources import THOROUGH, check_resources

SHAPE = KvShape(layers=2, heads=3, width=4)
PAGES, SIZE = 6, 4
PADDING = ("padding 0", "padding 1", "padding 2")


class Bench:
    """A cache with buffers for two slots of four rows, and three padding rows."""

    def __init__(self, pages: int = PAGES) -> None:
        self.cache = PagedKvCache(SHAPE, pages, SIZE, prefix_cache=True, host_pages=pages)
        self.runner = StepRunner({"kv": self.cache})
        for rid in PADDING:
            self.runner.ingest_capture_row(rid)
        self.runner.build_accelerator_graph_buffers(2, 4, pages * SIZE)

    def step(self, *rids: str, bucket: int = 0, slot: int | None = 0) -> SubmoduleStep:
        """One token for each request, and padding rows up to the bucket."""
        padding = PADDING[: max(0, bucket - len(rids))]
        segments = (*(Segment(rid, 1) for rid in rids), *(Segment(rid, 0) for rid in padding))
        ctx = StepContext(request_ids=rids, padded_request_ids=(*rids, *padding), slot=slot)
        return SubmoduleStep({"kv": ResourceStep()}, segments, ctx)

    def decode(self, *rids: str, bucket: int = 0, slot: int = 0) -> DecodeRows:
        step = self.step(*rids, bucket=bucket, slot=slot)
        assert self.runner.admit(step).ok
        self.runner.plan(step)
        self.runner.commit(step)
        return step.ctx.result("kv", DecodeRows)

    def store(self, rid: str, tokens: int) -> None:
        """Open a request with so many tokens."""
        self.runner.ingest_request(rid)
        step = SubmoduleStep({"kv": ResourceStep()}, (Segment(rid, tokens),))
        assert self.runner.admit(step).ok
        self.runner.commit(step)

    def pages(self, rid: str) -> list[int]:
        return self.cache.ledger.stream(rid).pages.tolist()


def addresses(rows: DecodeRows) -> tuple[int, int, int]:
    return rows.slots.data_ptr(), rows.starts.data_ptr(), rows.table.data_ptr()


def values(rows: DecodeRows) -> tuple[object, object, object]:
    return rows.slots.tolist(), rows.starts.tolist(), rows.table.tolist()


def test_a_cache_can_be_captured() -> None:
    """The runner looks for the ability once, by its methods."""
    assert isinstance(PagedKvCache(SHAPE, PAGES, SIZE), Capturing)


def test_rows_of_requests_decode_into_their_own_pages_and_padding_rows_into_the_sink() -> None:
    """The replay reads no list of who is real: what it reads must keep the rows apart."""
    bench = Bench()
    bench.store("a", 5)
    bench.store("b", 2)
    rows = bench.decode("a", "b", bucket=4)
    (first, second), (other,) = bench.pages("a"), bench.pages("b")
    assert rows.slots.tolist() == [second * SIZE + 1, other * SIZE + 2, PAGES * SIZE, PAGES * SIZE]
    assert rows.starts.tolist() == [5, 2, 0, 0]
    # The end of a short row is its own page again: the sink may hold what is no number.
    assert rows.table.tolist() == [[first, second], [other, other], [PAGES, PAGES], [PAGES, PAGES]]


@pytest.mark.parametrize(("stored", "width"), [(2, 1), (4, 2), (8, 4), (12, 4), (16, 6), (20, 6)])
def test_the_table_is_as_wide_as_the_longest_row_needs_in_powers_of_two(stored: int, width: int) -> None:
    """A width for each length would be a capture for each; and none is wider than the pool."""
    bench = Bench()
    bench.store("a", stored)
    assert bench.decode("a", bucket=2).table.shape == (2, width)


def test_a_padding_row_reserves_nothing_and_leaves_no_trace() -> None:
    """In a captured step, in one that is not, when it is refused, and when it is removed."""
    bench, bare = Bench(), Bench()
    for rid in PADDING:
        bare.runner.remove_request(rid)
    for each, bucket in ((bench, 4), (bare, 1)):
        each.store("a", 3)
        each.decode("a", bucket=bucket)
        step = each.step("a", bucket=bucket, slot=None)
        assert each.runner.admit(step).ok
        each.runner.plan(step)
        assert len(step.ctx.result("kv", KvPlan).slots) == 1
        each.runner.rollback_admit(step)
        each.runner.check_integrity()
    for rid in PADDING:
        bench.runner.remove_request(rid)
    assert bench.cache.holdings() == bare.cache.holdings()
    assert bench.cache.page_trail() == bare.cache.page_trail()


def test_a_whole_pool_can_be_promised_and_taken_beside_padding_rows() -> None:
    """Capture pages that were taken from the pool would be lost to the requests for ever."""
    bench = Bench()
    tokens = PAGES * SIZE
    bench.runner.ingest_request("a", {"kv": KvClaim(tokens)})
    step = SubmoduleStep({"kv": ResourceStep()}, (Segment("a", tokens - 1),))
    assert bench.runner.admit(step).ok
    bench.runner.commit(step)
    rows = bench.decode("a", bucket=4)
    assert sorted(bench.pages("a")) == list(range(PAGES))
    assert rows.slots[1:].tolist() == [PAGES * SIZE] * 3
    bench.runner.check_integrity()


def test_the_sink_page_is_known_to_nobody_but_the_store() -> None:
    """It is not counted, not published, not offloaded; and no request's page is where it is."""
    bench = Bench()
    bench.store("a", 9)
    bench.decode("a", bucket=4)
    assert bench.cache.layer(0)[0].shape[1] == PAGES + 1
    assert bench.cache.ledger.total == bench.cache.store.pages == PAGES
    holdings = bench.cache.holdings()
    assert PAGES not in {*holdings.free, *holdings.kept, *holdings.held["a"]}
    publication = bench.cache.publish("a", None, None)
    assert publication is not None
    assert publication.descriptor.pages == PAGES
    assert PAGES not in publication.pages
    assert bench.cache.offload("a") == 3
    bench.cache.reload("a")
    assert PAGES not in bench.pages("a")


def test_a_file_holds_the_pages_alone(tmp_path: Path) -> None:
    """Who maps it knows it by its descriptor. So nothing is captured there, which the error says."""
    path = tmp_path / "pages"
    cache = PagedKvCache(SHAPE, PAGES, SIZE, path=str(path))
    assert path.stat().st_size == SHAPE.layers * 2 * SHAPE.heads * PAGES * SIZE * SHAPE.width * 4
    cache.ingest_capture_row("padding")
    with pytest.raises(ArgumentError, match=r"sink page.*without path"):
        cache.build_accelerator_graph_buffers(1, 1, 1)


def test_pages_that_are_given_back_cannot_be_captured() -> None:
    """The place of a token would no longer follow from its position."""
    with pytest.raises(ArgumentError, match="window"):
        PagedKvCache(SHAPE, PAGES, SIZE, window=6).build_accelerator_graph_buffers(1, 1, 1)


def test_buffers_keep_their_addresses_when_they_are_asked_for_again() -> None:
    """A capture has noted them; and each size is the largest that was asked for."""
    bench = Bench()
    bench.store("a", 5)
    before = addresses(bench.decode("a", bucket=2))
    for sizes in ((2, 4, PAGES * SIZE), (1, 4, 8), (2, 1, 1)):
        bench.runner.build_accelerator_graph_buffers(*sizes)
        assert addresses(bench.decode("a", bucket=2)) == before
    bench.runner.build_accelerator_graph_buffers(3, 1, 1)
    rows = bench.decode("a", bucket=4, slot=2)
    assert rows.table.shape == (4, 4)


def test_rows_of_a_shape_are_the_same_object_until_the_buffers_grow() -> None:
    """So a capture is found by them, and one of buffers that are gone is not."""
    bench = Bench()
    bench.store("a", 1)
    rows = bench.decode("a", bucket=2)
    assert bench.decode("a", bucket=2) is rows
    assert bench.decode("a", bucket=3) is not rows
    bench.runner.build_accelerator_graph_buffers(2, 5, 1)
    assert bench.decode("a", bucket=2) is not rows


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_buffers_for_nothing_are_refused(sizes: tuple[int, int, int]) -> None:
    """Each number is somebody's mistake."""
    with pytest.raises(ArgumentError, match="1 slot, row and token or more"):
        PagedKvCache(SHAPE, PAGES, SIZE).build_accelerator_graph_buffers(*sizes)


@pytest.mark.parametrize(
    ("rids", "slot", "said"), [("abcde", 0, "5 rows of up to 1 pages"), ("a", 2, "slot 2")]
)
def test_a_step_that_does_not_fit_says_which_buffers_there_are(rids: str, slot: int, said: str) -> None:
    """It would read numbers of another step, or of nobody."""
    bench = Bench()
    for rid in rids:
        bench.store(rid, 1)
    step = bench.step(*rids, slot=slot)
    assert bench.runner.admit(step).ok
    with pytest.raises(EngineError, match=rf"{said}; .*2 slots of 4 rows of 6 pages: call build_acc"):
        bench.runner.plan(step)


def test_a_step_without_buffers_says_what_to_do() -> None:
    """The engine's own node builds them; another may forget it."""
    cache = PagedKvCache(SHAPE, PAGES, SIZE)
    cache.ingest("a", None)
    step, ctx = ResourceStep((Segment("a", 1),)), StepContext(slot=0)
    assert cache.admit(step, ctx).ok
    with pytest.raises(EngineError, match="call build_accelerator_graph_buffers before"):
        cache.plan(step, ctx)


def test_a_row_of_several_tokens_is_no_row_of_a_captured_step() -> None:
    """It would store the last of them and say nothing."""
    bench = Bench()
    bench.runner.ingest_request("a")
    step = SubmoduleStep({"kv": ResourceStep()}, (Segment("a", 3),), StepContext(slot=0))
    assert bench.runner.admit(step).ok
    with pytest.raises(EngineError, match="one token to a row, got 3"):
        bench.runner.plan(step)


@pytest.mark.parametrize("slot", [0, 1])
def test_a_step_that_is_planned_ahead_does_not_touch_what_the_one_before_it_reads(slot: int) -> None:
    """It may still compute, in the same buffers or others; what was planned is there when its turn comes."""
    bench = Bench()
    bench.store("a", 3)
    bench.store("b", 6)
    live = bench.decode("a", "b", bucket=4, slot=0)
    seen = values(live)
    staged = bench.step("a", "b", bucket=4, slot=slot)
    assert bench.runner.pre_admit(staged).ok
    planned = bench.runner.pre_plan(staged)["kv"]
    assert isinstance(planned, DecodeRows)
    assert planned.starts.tolist() == [4, 7, 0, 0]
    assert values(live) == seen
    again = bench.step("a", "b", bucket=4, slot=slot)
    assert bench.runner.admit(again).ok
    promoted = bench.runner.plan(again)["kv"]
    assert isinstance(promoted, DecodeRows)
    assert values(promoted) == values(planned)
    assert (addresses(promoted) == addresses(live)) == (slot == 0)
    assert (values(live) == seen) == (slot == 1)
    bench.runner.commit(again)
    bench.runner.check_integrity()


def test_a_dropped_stage_leaves_the_buffers_alone() -> None:
    """The guess was wrong: the step that comes instead is planned as if nothing had been there."""
    bench = Bench()
    bench.store("a", 3)
    bench.store("b", 6)
    live = bench.decode("a", "b", bucket=2)
    seen = values(live)
    staged = bench.step("a", "b", bucket=2)
    assert bench.runner.pre_admit(staged).ok
    bench.runner.pre_plan(staged)
    bench.runner.clear_preplan()
    assert values(live) == seen
    assert bench.decode("b", bucket=2) is live
    assert live.slots.tolist() == [bench.pages("b")[-1] * SIZE + 3, PAGES * SIZE]
    assert live.starts.tolist() == [7, 0]
    bench.runner.check_integrity()


def test_two_slots_are_two_memories() -> None:
    """Who captures on two streams lets one be written while the other is read."""
    bench = Bench()
    bench.store("a", 3)
    bench.store("b", 6)
    first = bench.decode("a", bucket=4, slot=0)
    seen = values(first)
    second = bench.decode("b", bucket=4, slot=1)
    assert values(first) == seen
    assert not set(addresses(first)).intersection(addresses(second))


def test_what_a_captured_step_writes_lands_where_another_step_would_put_it() -> None:
    """A request goes from one kind of step to the other and back."""
    bench = Bench()
    bench.store("a", 3)
    bench.store("b", 3)
    rows = bench.decode("a", bucket=4)
    keys = torch.arange(4.0)[:, None, None].expand(4, SHAPE.heads, SHAPE.width)
    before = bench.cache.store.numbers[:, :, :, :PAGES].clone()
    bench.cache.write(1, keys, -keys, rows)
    (page,) = bench.pages("a")
    before[1, 0, :, page, 3], before[1, 1, :, page, 3] = 0.0, -0.0
    assert torch.equal(bench.cache.store.numbers[:, :, :, :PAGES], before)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_captured_step_says_what_the_plain_plan_says(data: st.DataObject) -> None:
    """The two know the same pages: whatever a request did before, only the form differs."""
    bench = Bench(pages=12)
    lengths = data.draw(st.lists(st.integers(1, 11), min_size=1, max_size=4))
    rids = tuple(f"r{at}" for at in range(len(lengths)))
    for rid, length in zip(rids, lengths, strict=True):
        bench.store(rid, length)
    plain, captured = (bench.step(*rids, bucket=4, slot=slot) for slot in (None, 0))
    assert bench.runner.admit(plain).ok
    plan = bench.runner.plan(plain)["kv"]
    rows = bench.runner.plan(captured)["kv"]
    assert isinstance(plan, KvPlan)
    assert isinstance(rows, DecodeRows)
    count, width = len(rids), plan.table.shape[1]
    assert torch.equal(rows.slots[:count], plan.slots)
    assert torch.equal(rows.starts[:count] + 1, plan.lengths[:count])
    assert torch.equal(rows.table[:count, :width], plan.table[:count])
    assert torch.equal(
        rows.table[:count, width:], plan.table[:count, :1].expand(count, rows.table.shape[1] - width)
    )
    assert set(rows.slots[count:].tolist()) <= {12 * SIZE}
    assert set(rows.table[count:].flatten().tolist()) <= {12}


def test_a_cache_with_captured_steps_keeps_its_contract() -> None:
    """Beside others, staged, dropped and broken off, with padding rows behind them."""

    def make() -> Mapping[str, Resource]:
        return {"kv": PagedKvCache(SHAPE, PAGES, SIZE, host_pages=4), "sampler": Sampler()}

    def shown(plan: object) -> object:
        assert isinstance(plan, KvPlan | DecodeRows)
        return plan.slots.tolist(), plan.table.tolist()

    check_resources(make, captured=True, shown={"kv": shown}, how=settings(THOROUGH, max_examples=50))
