"""Every resource of the engine, alone and together, under random lives of requests."""

from collections.abc import Callable, Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from treadle.engine.resources import Resource
from treadle.engine.resources.attention import Attention
from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.kv_step import KvClaim
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.positions import Positions, Rotation
from treadle.engine.resources.sampler import Sampler
from treadle.engine.resources.sampling import Sampling
from treadle.engine.resources.slot_state import SlotPlan, SlotState
from treadle.testing.resources import THOROUGH, check_resource, check_resources

SHAPE = KvShape(layers=1, heads=1, width=2)
FEWER = settings(THOROUGH, max_examples=50)


def shown_kv(plan: object) -> object:
    assert isinstance(plan, KvPlan)
    return plan.slots.tolist(), [(row.start, row.span, list(row.pages)) for row in plan.rows]


def shown_slots(plan: object) -> object:
    assert isinstance(plan, SlotPlan)
    return plan.slots.tolist()


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
    check_resource(make, shown=shown_kv, how=FEWER)


def test_a_cache_keeps_its_promises() -> None:
    """What was promised is not taken by others, whatever is undone in between."""
    claims = st.integers(0, 20).map(KvClaim)
    check_resource(lambda: PagedKvCache(SHAPE, 8, 4), requests=claims, shown=shown_kv)


def test_rows_of_no_token_are_rows() -> None:
    """They read what is stored and reserve nothing."""
    check_resource(lambda: PagedKvCache(SHAPE, 6, 4), spans=st.integers(0, 6), shown=shown_kv, how=FEWER)


def test_slots_keep_their_contract() -> None:
    """A slot that two requests have mixes their states."""
    check_resource(lambda: SlotState((2,), slots=2), shown=shown_slots)


def language_model() -> Mapping[str, Resource]:
    return {
        "kv": PagedKvCache(SHAPE, 6, 4, prefix_cache=True, host_pages=4),
        "positions": Positions(context=32, width=2, base=100.0),
        "attention": Attention(heads=1, width=2),
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
        shown={"kv": shown_kv, "positions": shown_rotation, "state": shown_slots},
        how=FEWER,
    )
