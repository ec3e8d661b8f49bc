"""Free, owned and idle pages, and the trail by which twins prove that they allocate alike."""

import pytest

from treadle.engine.resources.page_pool import PagePool
from treadle.errors import ArgumentError, EngineError


def test_a_page_is_free_when_its_last_owner_drops_it() -> None:
    """Before, somebody still reads it."""
    pool = PagePool(2)
    (page,) = pool.take(1)
    pool.share([page])
    pool.drop([page])
    assert page not in pool.free
    pool.drop([page])
    assert page in pool.free
    pool.check_integrity([])


def test_dropping_restores_the_order_of_taking() -> None:
    """The next owner must get the same pages as if nobody had taken them."""
    pool = PagePool(5)
    before = pool.free
    first, second = pool.take(2), pool.take(2)
    pool.drop(second)
    pool.drop(first)
    assert pool.free == before


def test_more_than_there_is_takes_nothing() -> None:
    """Whoever takes without asking first is wrong, and must not leave a part behind."""
    pool = PagePool(2)
    with pytest.raises(EngineError, match="3 pages are to be taken, 2 of 2 are free"):
        pool.take(3)
    assert len(pool.free) == 2


def test_a_page_that_the_index_alone_owns_is_idle() -> None:
    """Nobody waits for it, and it can be had."""
    pool = PagePool(2)
    (page,) = pool.take(1)
    pool.enter(page)
    assert (pool.is_idle(page), pool.available) == (False, 1)
    pool.drop([page])
    assert (pool.is_idle(page), pool.available) == (True, 2)
    pool.share([page])
    assert (pool.is_idle(page), pool.available) == (False, 1)
    pool.leave(page)
    assert (pool.is_idle(page), pool.available, pool.owners(page)) == (False, 1, 1)
    pool.check_integrity([page])


def test_the_trail_tells_pages_and_orders_apart() -> None:
    """Two ranks in lock-step compare it, and go apart at the first difference."""
    trails = []
    for order in ([1, 1], [2], [1]):
        pool = PagePool(4)
        for count in order:
            pool.drop(pool.take(count))
        trails.append(pool.trail)
    assert len(set(trails)) == 3
    # The same in every process: a number that was written down.
    assert trails[2] == (2, 832934568)


def test_a_pool_without_a_page_is_refused() -> None:
    """It could never serve anybody."""
    with pytest.raises(ArgumentError):
        PagePool(0)
