"""Keys of pages and the index over them."""

from collections.abc import Sequence

import pytest

from treadle.engine.resources import prefix_index
from treadle.engine.resources.page_pool import PagePool
from treadle.engine.resources.prefix_index import Chain, PrefixIndex


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The tokens of each page that was hashed, in order."""
    seen: list[tuple[int, ...]] = []
    key = prefix_index.page_key

    def noted(before: bytes, tokens: Sequence[int]) -> bytes:
        seen.append(tuple(tokens))
        return key(before, tokens)

    monkeypatch.setattr(prefix_index, "page_key", noted)
    return seen


def chain_of(*tokens: int, every: int = 1) -> Chain:
    chain = Chain(2, every)
    chain.expect(0, tokens)
    return chain


def test_a_key_stands_for_all_that_went_before() -> None:
    """The same page behind another beginning has other keys and values."""
    one, two = chain_of(1, 2, 3, 4), chain_of(9, 2, 3, 4)
    assert len(one.keys) == 2
    assert one.keys == chain_of(1, 2, 3, 4, 5).keys
    assert not set(one.keys) & set(two.keys)


def test_the_same_text_again_is_not_hashed_again(hashed: list[tuple[int, ...]]) -> None:
    """A request that waits is asked about in every turn of the scheduler."""
    chain = chain_of(1, 2, 3, 4, 5)
    assert hashed == [(1, 2), (3, 4)]
    assert not chain.expect(0, (1, 2, 3, 4, 5))
    assert chain.expect(2, (3, 4, 6, 7))
    assert hashed == [(1, 2), (3, 4), (3, 4), (6, 7)]


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_late_keys_lag_by_less_than_they_may_and_then_are_the_same(every: int) -> None:
    """One hash for many tokens costs less, and nothing may be lost by it."""
    eager, late = chain_of(1), chain_of(1, every=every)
    for token in range(20):
        eager.extend([token])
        late.extend([token])
        assert len(late) == len(eager)
        assert late.keys == eager.keys[: len(late.keys)]
        assert 2 * len(late.keys) > len(eager) - every - 2
    late.flush()
    assert late.keys == eager.keys


def test_tokens_one_by_one_or_together_give_the_same_keys() -> None:
    """How a step hands them over is no part of the text."""
    one, all_at_once = chain_of(1, 2, 3), chain_of(1, 2, 3)
    for token in (4, 5, 6, 7):
        one.extend([token])
    all_at_once.extend([4, 5, 6, 7])
    assert one.keys == all_at_once.keys


def filled(pages: int, *texts: Sequence[int]) -> tuple[PrefixIndex, PagePool, list[list[int]]]:
    """An index with the pages of these texts, which nobody else owns."""
    pool = PagePool(pages)
    index, owned = PrefixIndex(pool), []
    for text in texts:
        keys = chain_of(*text).keys
        owned.append(pool.take(len(keys)).tolist())
        index.add(keys, owned[-1])
        pool.drop(owned[-1])
    return index, pool, owned


def test_a_match_ends_at_the_first_unknown_page() -> None:
    """What comes after it depends on it."""
    index, _, (pages,) = filled(4, (1, 2, 3, 4, 5, 6))
    assert index.match(chain_of(1, 2, 3, 4, 9, 9).keys) == pages[:2]
    assert index.match(chain_of(3, 4).keys) == []


def test_a_known_key_keeps_its_page() -> None:
    """Two requests that computed the same text at once: one page serves, the other goes with its request."""
    index, pool, (pages,) = filled(4, (1, 2))
    twin = pool.take(1)
    index.add(chain_of(1, 2).keys, twin)
    assert index.match(chain_of(1, 2).keys) == pages
    pool.drop(twin)
    pool.check_integrity([])


def test_the_longest_unused_page_goes_first_and_of_one_text_the_last() -> None:
    """A beginning serves more requests than an end, and without it the end cannot be found."""
    index, pool, (first, second) = filled(4, (1, 2, 3, 4), (5, 6, 7, 8))
    index.match(chain_of(1, 2, 3, 4).keys)
    assert pool.take(1).tolist() == second[1:]
    assert index.match(chain_of(5, 6, 7, 8).keys) == second[:1]
    assert pool.take(1).tolist() == first[1:]
    assert len(pool.indexed) == 2


def test_a_page_in_use_is_not_let_go_of() -> None:
    """Its request reads it in every step."""
    index, pool, (first, second) = filled(2, (1, 2), (5, 6))
    pool.share(first)
    assert pool.take(1).tolist() == second
    assert index.match(chain_of(1, 2).keys) == first
    pool.check_integrity([*first, *second])
