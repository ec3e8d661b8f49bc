"""A small run meets every fault at every one of its requests: ridden out, or healed by the next run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from uuid import uuid4

import fsspec
import pytest

from tests.chaos.proxy import Fault, Proxy, Seen
from treadle.artifacts import open_store
from treadle.artifacts.logs import read_log
from treadle.artifacts.verify import verify
from treadle.errors import TreadleError
from treadle.execution import StepRunner, StepSpec

HEALTHY = 10_000
STALLED = 0.5
READS = ("GET", "HEAD")
# At these the store is out of reach for good: nothing arrives, or all arrives and nothing comes back.
LASTING = [Fault.RESET, Fault.LOST_ANSWER]


class Pair:
    """Two steps in a fresh store, the second of which reads the first. Bodies write past the proxy."""

    def __init__(self, bucket: str, server: str) -> None:
        self.prefix = f"{bucket}/{uuid4().hex[:8]}"
        self.ran: Counter[str] = Counter()
        self._fs = fsspec.filesystem("s3", endpoint_url=server)
        self.first = self._step("a")
        self.steps = [self.first, self._step("b", self.first)]

    def _step(self, name: str, *deps: StepSpec) -> StepSpec:
        def fn(path: str) -> str:
            self.ran[name] += 1
            print(name, "at work")
            self._fs.pipe_file(f"{path}/out.txt", name.encode())
            return name * 3

        return StepSpec(name, fn, deps, output_path_prefix=self.prefix)

    def run(self, force: tuple[str, ...] = ()) -> None:
        results = StepRunner(1).run(self.steps, force=force)
        assert [results[each.id] for each in self.steps] == ["aaa", "bbb"]

    def check(self, builds: int = 1) -> None:
        """All is well, to the last object, and nothing is done again."""
        store = open_store(self.prefix)
        before = self.ran.copy()
        self.run()
        assert self.ran == before, "what is done is served"
        for step in self.steps:
            numbers = [each.number for each in store.records(store.place(step.output_path))]
            assert numbers == list(range(1, len(numbers) + 1)), "numbers without a gap"
            assert len(numbers) == builds
            assert f"{step.name} at work" in read_log(self.prefix, store.place(step.output_path))
        assert list(verify(store)) == []
        assert list(store.ledger.leases()) == []
        done = Counter(each.name for each in store.ledger.attempts() if each.outcome == "done")
        assert done == dict.fromkeys("ab", builds)


@pytest.fixture
def pairs(bucket: str, proxy: Proxy) -> Iterator[Pair]:
    """Fresh stores, one after the other, to no end."""
    return iter(lambda: Pair(bucket, proxy.target), None)


def requests_of(proxy: Proxy, act: Callable[[], None]) -> list[Seen]:
    """The requests that it takes when all is well."""
    before = len(proxy.seen)
    act()
    return proxy.seen[before:]


def meet(kind: Fault, at: int, proxy: Proxy, pair: Pair) -> None:
    """Run with that fault at that request."""
    proxy.fault(at, kind)
    pair.run()
    proxy.well()
    last = open_store(pair.prefix).ledger.attempts()
    assert [each.outcome for each in last] == ["done", "done"]
    assert pair.ran == {"a": 1, "b": 1}, f"{kind} at request {at}"


def test_a_lost_answer_to_any_write_is_ridden_out(proxy: Proxy, pairs: Iterator[Pair]) -> None:
    """The worst fault: a conditional write was made, and the second try is refused: is it ours?"""
    next(pairs).run()
    for at, seen in enumerate(requests_of(proxy, next(pairs).run), 1):
        if seen.method not in READS:
            meet(Fault.LOST_ANSWER, at, proxy, pair := next(pairs))
            pair.check()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", Fault)
def test_a_fault_at_any_request_is_ridden_out(
    kind: Fault, proxy: Proxy, pairs: Iterator[Pair], answer_within: Callable[[float], None]
) -> None:
    answer_within(STALLED if kind.startswith("stall") else 10)
    next(pairs).run()
    total = len(requests_of(proxy, next(pairs).run))
    for at in range(1, total + 1):
        meet(kind, at, proxy, pair := next(pairs))
        pair.check()
    print(f"{kind}: ridden out at each of {total} requests")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", Fault)
def test_a_fault_at_any_request_of_a_rebuild(
    kind: Fault, proxy: Proxy, pairs: Iterator[Pair], answer_within: Callable[[float], None]
) -> None:
    answer_within(STALLED if kind.startswith("stall") else 10)
    pair = next(pairs)
    pair.run()
    force = ("a", "b")
    total = len(requests_of(proxy, lambda: pair.run(force)))
    for at in range(1, total + 1):
        proxy.fault(at, kind)
        pair.run(force)
        proxy.well()
    pair.check(builds=total + 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", LASTING)
def test_a_store_that_goes_away_at_any_request_leaves_nothing_half_done(
    kind: Fault, proxy: Proxy, pairs: Iterator[Pair], patience: Callable[[float], None]
) -> None:
    patience(0.1)
    next(pairs).run()
    total = len(requests_of(proxy, next(pairs).run))
    ends = Counter[str]()
    for at in range(1, total + 1):
        pair = next(pairs)
        proxy.fault(at, kind, burst=HEALTHY)
        try:
            pair.run()
            ends["done"] += 1
        except Exception as error:  # noqa: BLE001 - looked at below
            ends["failed"] += 1
            check_told(error, pair)
        proxy.well()
        pair.run()
        assert all(count <= 2 for count in pair.ran.values()), (at, pair.ran)
        pair.check()
    print(f"{kind} from request 1 to {total} on: {dict(ends)}")


def check_told(error: BaseException, pair: Pair) -> None:
    """It says which URL, which operation, and what to do."""
    said = str(error)
    assert isinstance(error, TreadleError | ExceptionGroup), said
    assert pair.prefix in said
    assert "cannot use the " in said
    assert "out of reach for" in said
    assert "run again" in said
