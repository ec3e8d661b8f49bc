"""One node computes a prompt, another one goes on from it: pages go through a file that both map."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from treadle.engine.resources.kv_cache import PagedKvCache
from treadle.engine.resources.kv_plan import KvPlan
from treadle.engine.resources.kv_publication import KvPublication
from treadle.engine.resources.kv_store import KvShape
from treadle.engine.resources.runner import StepRunner
from treadle.engine.resources.step import PublishedInfo, Refusal, ResourceStep, Segment, SubmoduleStep
from treadle.errors import EngineError

SHAPE = KvShape(layers=2, heads=2, width=3)
TOKENS = 10


def numbers(count: int) -> torch.Tensor:
    return torch.arange(count * 2 * 3, dtype=torch.float32).view(count, 2, 3)


def prefilled(path: str | None, window: int | None = None) -> PagedKvCache:
    """A cache in which request a has stored its prompt."""
    cache = PagedKvCache(SHAPE, 6, 4, path=path, window=window)
    runner = StepRunner({"kv": cache})
    for rid, span in (("other", 5), ("a", TOKENS)):
        runner.ingest_request(rid)
        step = SubmoduleStep({"kv": ResourceStep()}, (Segment(rid, span),))
        assert runner.admit(step).ok
        runner.plan(step)
        for layer in range(2):
            new = numbers(span) + 1000 * layer
            cache.write(layer, new, -new, step.ctx.result("kv", KvPlan))
        runner.commit(step)
    return cache


def published(cache: PagedKvCache) -> KvPublication:
    info = cache.publish("a", "prefill", "walk")
    assert info is not None
    return info


def published_elsewhere(path: str) -> KvPublication:
    """The publication of a process that is gone when it is read."""
    code = (
        "import pickle, sys\n"
        "from tests.engine.resources.test_kv_retrieval import prefilled, published\n"
        "sys.stdout.buffer.write(pickle.dumps(published(prefilled(sys.argv[1]))))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, path], env=environment, capture_output=True, check=True
    )
    info = pickle.loads(done.stdout)
    assert isinstance(info, KvPublication)
    return info


def test_pages_come_from_another_process_as_they_are_there(tmp_path: Path) -> None:
    """Asked again, it is ready and nothing is taken twice."""
    info = published_elsewhere(str(tmp_path / "pages"))
    cache = PagedKvCache(SHAPE, 4, 4)
    runner = StepRunner({"kv": cache}, {"decode": ["kv"]})
    runner.ingest_request("a")
    for _ in range(2):
        outcome = runner.admit_retrieve("a", "decode", "walk", {"kv": info})
        assert (outcome.ok, outcome.ready) == (True, True)
    stream = cache.ledger.stream("a")
    assert (stream.stored, len(stream.pages), len(cache.ledger.free)) == (TOKENS, 3, 1)
    for layer in range(2):
        keys, values = (half[:, list(stream.pages)].flatten(1, 2)[:, :TOKENS] for half in cache.layer(layer))
        assert torch.equal(keys.transpose(0, 1), numbers(TOKENS) + 1000 * layer)
        assert torch.equal(values, -keys)
    runner.check_integrity()


def test_no_room_is_told_and_asked_again(tmp_path: Path) -> None:
    """Somebody may go."""
    info = published(prefilled(str(tmp_path / "pages")))
    cache = PagedKvCache(SHAPE, 3, 4)
    runner = StepRunner({"kv": cache}, {"decode": ["kv"]})
    for rid in "ab":
        runner.ingest_request(rid)
    step = SubmoduleStep({"kv": ResourceStep()}, (Segment("b", 1),))
    assert runner.admit(step).ok
    runner.commit(step)
    outcome = runner.admit_retrieve("a", "decode", "walk", {"kv": info})
    assert (outcome.ok, outcome.reason, outcome.key) == (False, Refusal.ALLOCATION_FAILED, "kv")
    runner.remove_request("b")
    assert runner.admit_retrieve("a", "decode", "walk", {"kv": info}).ready
    runner.remove_request("a")
    runner.ingest_request("a")
    assert runner.admit_retrieve("a", "decode", "walk", {"kv": info}).ready
    assert cache.ledger.stream("a").stored == TOKENS


def test_a_window_comes_with_what_was_given_back(tmp_path: Path) -> None:
    """The tokens that are gone count, and no page is taken for them."""
    info = published(prefilled(str(tmp_path / "pages"), window=3))
    assert (info.length, info.gone, len(info.pages)) == (TOKENS, 2, 1)
    cache = PagedKvCache(SHAPE, 1, 4, window=3)
    cache.ingest("a", None)
    assert cache.admit_retrieve("a", "decode", "walk", info).ready
    assert (cache.ledger.stream("a").stored, cache.ledger.stream("a").gone) == (TOKENS, 2)
    cache.check_integrity()


def test_pages_of_another_kind_or_of_nobody_elses_memory_are_refused_for_good(tmp_path: Path) -> None:
    """To ask again would not help."""
    shared = published(prefilled(str(tmp_path / "pages")))
    for cache, info in (
        (PagedKvCache(SHAPE, 6, 8), shared),
        (PagedKvCache(SHAPE, 6, 4, dtype=torch.bfloat16), shared),
        (PagedKvCache(SHAPE, 6, 4, layout="other"), shared),
        (PagedKvCache(SHAPE, 6, 4), published(prefilled(None))),
    ):
        cache.ingest("a", None)
        assert cache.admit_retrieve("a", "decode", "walk", info).reason is Refusal.RUNTIME_ERROR
        assert len(cache.ledger.free) == 6


def test_nothing_published_is_nothing_to_wait_for_and_what_does_not_fit_is_named(tmp_path: Path) -> None:
    """Mixing two texts in one stream, or two kinds of publication, is a bug of the caller."""
    cache = prefilled(str(tmp_path / "pages"))
    info = published(cache)
    assert cache.admit_retrieve("a", "decode", "walk", None).ready
    with pytest.raises(EngineError, match="has tokens here already"):
        cache.admit_retrieve("a", "decode", "walk", info)
    with pytest.raises(EngineError, match="'x' is not open"):
        cache.admit_retrieve("x", "decode", "walk", info)
    with pytest.raises(EngineError, match="a KvPublication, got PublishedInfo"):
        cache.admit_retrieve("a", "decode", "walk", PublishedInfo())


@pytest.mark.parametrize("lost", ["gone", "cut short", "other pages", "pages of nobody"])
def test_what_cannot_be_read_takes_nothing(tmp_path: Path, lost: str) -> None:
    """A file that is made anew is full of zeros, and a request would go on from them without a word."""
    path = tmp_path / "pages"
    info = published(prefilled(str(path)))
    if lost == "gone":
        path.unlink()
    elif lost == "cut short":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        info = replace(info, pages=info.pages[:-1] if lost == "other pages" else (*info.pages[:-1], 6))
    cache = PagedKvCache(SHAPE, 4, 4)
    cache.ingest("a", None)
    with pytest.raises(EngineError, match=r"stand in .*pages|stand on 3 of the pages 0 to 5"):
        cache.admit_retrieve("a", "decode", "walk", info)
    assert len(cache.ledger.free) == 4
    assert not path.exists() or lost != "gone"
    assert cache.ledger.stream("a").reserved is None
    cache.check_integrity()
