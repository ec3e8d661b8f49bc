"""What other nodes are told about a request's keys and values, now or later."""

import pytest

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_publication import KvDescriptor, KvPublication
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep
from treadle.errors import EngineError

SHAPE = KvShape(layers=1, heads=1, width=1)


@pytest.fixture
def cache() -> PagedKvCache:
    return PagedKvCache(SHAPE, 8, 16, host_pages=8)


def store(cache: PagedKvCache, rid: str, span: int) -> None:
    runner = StepRunner({"kv": cache})
    step = SubmoduleStep({"kv": ResourceStep()}, (Segment(rid, span),))
    assert runner.admit(step).ok
    runner.commit(step)


def publication(cache: PagedKvCache, rid: str) -> KvPublication:
    published = cache.publish(rid, "node", "walk")
    assert published is not None
    return published


def test_a_snapshot_finished_later_says_what_was_to_be_said_then(cache: PagedKvCache) -> None:
    """The step goes on at once, and the message is made when there is time."""
    cache.ingest("a", None)
    store(cache, "a", 40)
    eager, snapshot = publication(cache, "a"), cache.publish_snapshot("a", "node", "walk")
    assert eager.length == 40
    assert eager.pages == tuple(cache.ledger.stream("a").pages[:3])
    assert eager.descriptor == KvDescriptor(SHAPE, 16, "float32", "torch", pages=8)
    store(cache, "a", 30)
    assert cache.publish_from_snapshot("a", snapshot, "node", "walk") == eager
    assert len(publication(cache, "a").pages) == 5
    cache.remove("a")
    assert cache.publish_from_snapshot("a", snapshot, "node", "walk") == eager


def test_a_finished_publication_does_not_grow_with_the_stream(cache: PagedKvCache) -> None:
    """It is on its way to another process."""
    cache.ingest("a", None)
    store(cache, "a", 40)
    published = publication(cache, "a")
    pages = published.pages
    store(cache, "a", 60)
    assert published.pages == pages
    assert published.length == 40


def test_an_unknown_request_has_nothing_and_an_empty_one_no_token(cache: PagedKvCache) -> None:
    """Not open is not the same as open and empty."""
    assert cache.publish("a", None, None) is None
    assert cache.publish_snapshot("a", None, None) is None
    assert cache.publish_from_snapshot("a", None, None, None) is None
    cache.ingest("a", None)
    snapshot = cache.publish_snapshot("a", None, None)
    assert cache.publish_from_snapshot("a", snapshot, None, None) == publication(cache, "a")
    assert (publication(cache, "a").length, publication(cache, "a").pages) == (0, ())


def test_a_batch_of_snapshots_has_what_each_has(cache: PagedKvCache) -> None:
    """One call for a step, and no entry for a request that is not here."""
    for rid, span in (("a", 20), ("b", 40)):
        cache.ingest(rid, None)
        store(cache, rid, span)
    batch = cache.publish_snapshot_batch(["b", "x", "a"], "node", lambda rid: "walk")
    assert batch == {rid: cache.publish_snapshot(rid, "node", "walk") for rid in ("b", "a")}


def test_pages_that_moved_have_another_epoch(cache: PagedKvCache) -> None:
    """Whoever still has the old page numbers must not read them."""
    cache.ingest("a", None)
    store(cache, "a", 20)
    before = publication(cache, "a")
    cache.offload("a")
    assert cache.publish("a", None, None) is None
    cache.reload("a")
    assert publication(cache, "a").epoch != before.epoch
    cache.remove("a")
    cache.ingest("a", None)
    assert publication(cache, "a").epoch not in {before.epoch, before.epoch + 1}


def test_only_pages_of_stored_tokens_are_published(cache: PagedKvCache) -> None:
    """Those of a step under way hold nothing yet."""
    cache.ingest("a", None)
    store(cache, "a", 10)
    StepRunner({"kv": cache}).admit(SubmoduleStep({"kv": ResourceStep()}, (Segment("a", 40),)))
    assert (publication(cache, "a").length, len(publication(cache, "a").pages)) == (10, 1)


def test_another_snapshot_is_refused(cache: PagedKvCache) -> None:
    """A mix-up of resources would publish nonsense."""
    with pytest.raises(EngineError, match="finishes a KvSnapshot, got dict"):
        cache.publish_from_snapshot("a", {}, None, None)
