"""Every resource of the engine, alone and together, under random lives of requests."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from zlib import crc32

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

from treadle.engine.resources import Resource, ResourceStep, SubmoduleStep
from treadle.engine.resources.attention import Attention
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import DecodeRows, KvPlan
from treadle.engine.resources.kv_step import KvClaim, KvStep
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.paged_attention import PagedAttention, PagedRows
from treadle.engine.resources.pages import Fork
from treadle.engine.resources.positions import Positions, Rotation
from treadle.engine.resources.prefix_layout import PrefixLayout, PrefixSpan
from treadle.engine.resources.sampler import SamplePlan, Sampler
from treadle.engine.resources.sampling import Sampling
from treadle.engine.resources.slot_state import SlotPlan, SlotState
from treadle.testing.resources import THOROUGH, check_resource, check_resources

SHAPE = KvShape(layers=1, heads=1, width=2)
FEWER = settings(THOROUGH, max_examples=50)


def shown_kv(plan: object) -> object:
    if isinstance(plan, DecodeRows):
        return plan.slots.tolist(), plan.starts.tolist(), plan.table.tolist()
    assert isinstance(plan, KvPlan)
    return plan.slots.tolist(), [(row.start, row.span, list(row.pages)) for row in plan.rows]


def compute_kv(cache: PagedKvCache, step: SubmoduleStep) -> None:
    """Each token leaves a number of its stream and its place behind."""
    (plan,) = (each for each in step.ctx.plan_results.values() if each is not None)
    if isinstance(plan, DecodeRows):
        begun = [(row, start, 1) for row, start in zip(step.segments, plan.starts.tolist(), strict=True)]
    else:
        assert isinstance(plan, KvPlan)
        begun = [(row, at.start, at.span) for row, at in zip(step.segments, plan.rows, strict=True)]
    places = [(row[0], row.label, at) for row, start, span in begun for at in range(start, start + span)]
    numbers = torch.tensor([float(crc32(repr(place).encode()) % 2**20) for place in places])
    content = numbers[:, None, None].expand(-1, SHAPE.heads, SHAPE.width)
    cache.write(0, content, -content, plan)


def seen_kv(cache: PagedKvCache, rid: str, label: str) -> list[float]:
    account, size = cache.ledger.accounts.find(rid), cache.ledger.page_size
    if account is None or label not in account.streams:
        return []
    stream, keys = account.streams[label], cache.layer(0)[0][0, :, :, 0]
    pages = [*stream.pages, *(stream.lease.pages if stream.lease else ())]
    here = range(stream.gone * size, stream.start)
    return [float(keys[pages[at // size - stream.gone], at % size]) for at in here]


def forked_kv(part: ResourceStep, before: Sequence[Fork], after: Sequence[Fork]) -> ResourceStep:
    return KvStep(part.segments, tuple(before), tuple(after))


LAYOUT = PrefixLayout(
    (PrefixSpan("text", (1, 1, 1, 1)), PrefixSpan("image", (2, 2, 2, 2, 2, 2), cuttable=False))
)


def told_walk(claim: object, stored: int) -> tuple[str, Sequence[int]] | None:
    """The walk of the layout that begins there."""
    layout = claim.layout if isinstance(claim, KvClaim) else None
    span = layout.span_at(stored) if layout is not None else None
    return None if span is None else (span.graph_walk, span.tokens)


def shown_slots(plan: object) -> object:
    assert isinstance(plan, SlotPlan)
    return plan.slots.tolist()


def shown_picks(plan: object) -> object:
    assert isinstance(plan, SamplePlan)
    return plan.picked


def shown_tables(plan: object) -> object:
    assert isinstance(plan, PagedRows)
    return [each.tolist() for each in (plan.first, plan.spans, plan.starts, plan.pages)]


def shown_rotation(plan: object) -> object:
    assert isinstance(plan, Rotation)
    return plan.cos.tolist(), plan.sin.tolist()


CACHES: dict[str, Callable[[], PagedKvCache]] = {
    "plain": lambda: PagedKvCache(SHAPE, 6, 4),
    "with a page a token": lambda: PagedKvCache(SHAPE, 20, 1),
    "with a prefix cache": lambda: PagedKvCache(SHAPE, 6, 4, prefix_cache=True),
    "with late keys": lambda: PagedKvCache(SHAPE, 6, 4, prefix_cache=True, lazy_keys=3),
    "with a host pool": lambda: PagedKvCache(SHAPE, 6, 4, host_pages=4),
    "with a window": lambda: PagedKvCache(SHAPE, 6, 4, window=6),
    "with a host pool and prefixes": lambda: PagedKvCache(SHAPE, 6, 4, host_pages=4, prefix_cache=True),
}


@pytest.mark.parametrize("make", CACHES.values(), ids=CACHES)
def test_a_cache_keeps_its_contract(make: Callable[[], PagedKvCache]) -> None:
    """Pages are what requests wait for: one that is lost is lost until the process ends."""
    check_resource(make, forks=forked_kv, compute=compute_kv, shown=shown_kv, seen=seen_kv, how=FEWER)


def test_a_cache_keeps_its_promises() -> None:
    """What was promised is not taken by others, whatever is undone in between."""
    claims = st.integers(0, 20).map(KvClaim)
    check_resource(lambda: PagedKvCache(SHAPE, 8, 4), requests=claims, shown=shown_kv, how=FEWER)


def test_a_cache_is_read_by_another_node(tmp_path: Path) -> None:
    """What is retrieved is what was stored, and nothing is taken that does not come."""
    files = count()
    check_resource(
        lambda: PagedKvCache(SHAPE, 6, 4, path=str(tmp_path / f"{next(files)}")),
        compute=compute_kv,
        shown=shown_kv,
        seen=seen_kv,
        how=FEWER,
    )


def test_a_cache_runs_captured_steps() -> None:
    """A replay reads what is in the buffers at that moment, whatever was staged or broken off before."""
    check_resource(
        lambda: PagedKvCache(SHAPE, 6, 4),
        captured=True,
        compute=compute_kv,
        shown=shown_kv,
        seen=seen_kv,
        how=FEWER,
    )


def test_a_cache_serves_walks_that_were_told() -> None:
    """The walks of one text share its pages, and some need not run at all."""
    check_resource(
        lambda: PagedKvCache(SHAPE, 8, 2, prefix_cache=True),
        requests=st.sampled_from([None, KvClaim(12), KvClaim(12, LAYOUT)]),
        walks=told_walk,
        shown=shown_kv,
        how=FEWER,
    )


def test_rows_of_no_token_are_rows() -> None:
    """They read what is stored and reserve nothing."""
    check_resource(lambda: PagedKvCache(SHAPE, 6, 4), spans=st.integers(0, 6), shown=shown_kv, how=FEWER)


def test_slots_keep_their_contract() -> None:
    """A slot that two requests have mixes their states."""
    check_resource(lambda: SlotState((2,), slots=2), shown=shown_slots)


def test_each_label_has_a_slot_of_its_own() -> None:
    """A state has seen the tokens of one stream; a fork begins blank, for nobody copies it."""
    check_resource(lambda: SlotState((2,), slots=3), forks=forked_kv, shown=shown_slots, how=FEWER)


def language_model() -> Mapping[str, Resource]:
    return {
        "kv": PagedKvCache(SHAPE, 6, 4, prefix_cache=True, host_pages=4),
        "positions": Positions(context=32, width=2, base=100.0),
        "attention": Attention(heads=1, width=2),
        "paged attention": PagedAttention(),
        "sampler": Sampler(),
        "state": SlotState((2,), slots=3),
    }


def test_all_together_keep_their_contract() -> None:
    """What one resource gives back must be what the others were told it had."""
    check_resources(
        language_model,
        requests=st.fixed_dictionaries(
            {"sampler": st.builds(Sampling, temperature=st.sampled_from([0.0, 0.7]))}
        ),
        shown={
            "kv": shown_kv,
            "paged attention": shown_tables,
            "positions": shown_rotation,
            "sampler": shown_picks,
            "state": shown_slots,
        },
        how=FEWER,
    )
