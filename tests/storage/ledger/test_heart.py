"""The heartbeat, with a clock that the test moves and beats that fail when it says so."""

import threading
from collections.abc import Callable, Sequence

import pytest

from treadle.errors import LedgerError
from treadle.storage.ledger import Claim
from treadle.storage.ledger.heart import Heart, Kept

TTL = 30.0


class Scene:
    """A heart without a thread, the beats it made, and the claims it reported lost."""

    def __init__(self) -> None:
        self.now = 100.0
        self.beats: list[list[str]] = []
        self.failures = 0
        self.taken: set[str] = set()
        self.lost: list[str] = []
        self.lock = threading.RLock()
        self.during: Callable[[], None] = lambda: None
        self.heart = Heart(self.beat, TTL, lambda: self.now)
        self.heart._thread = threading.current_thread()  # so that none is started

    def beat(self, kept: Sequence[Kept]) -> None:
        began = self.now
        self.during()
        with self.lock:
            live = [each for each in kept if not each.ended]
            self.beats.append([each.claim.place for each in live])
            if self.failures:
                self.failures -= 1
                raise LedgerError("no answer")
            for each in live:
                each.lose() if each.claim.place in self.taken else each.confirm(began)

    def keep(self, place: str) -> Claim:
        claim = Claim(place, f"token of {place}", 1)
        self.heart.keep(claim, lambda: self.lost.append(place), self.lock, self.now)
        return claim


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_all_claims_are_kept_alive_by_one_beat(scene: Scene) -> None:
    for place in "abc":
        scene.keep(place)
    assert scene.heart.tick()
    assert scene.beats == [["a", "b", "c"]]
    assert scene.lost == []


def test_with_grace_a_claim_outlives_its_time_while_the_ledger_is_out_of_reach(scene: Scene) -> None:
    """Nobody else could reach it either; whether somebody did, the next beat tells."""
    scene.heart._grace = 10.0
    scene.keep("a")
    scene.failures = 2
    scene.now += TTL + 9
    assert not scene.heart.tick()
    assert scene.lost == []
    scene.now += 1
    assert not scene.heart.tick()
    assert scene.lost == ["a"]


def test_a_lost_claim_is_reported_once(scene: Scene) -> None:
    scene.keep("a")
    scene.keep("b")
    scene.taken = {"a"}
    scene.heart.tick()
    scene.heart.tick()
    assert scene.lost == ["a"]
    assert scene.beats == [["a", "b"], ["b"]]


@pytest.mark.parametrize("failures", [1, 5])
def test_failed_beats_are_tried_again_until_the_last_one_that_counted_runs_out(
    scene: Scene, failures: int
) -> None:
    scene.keep("a")
    scene.failures = failures
    for _ in range(failures):
        scene.now += TTL / 6 - 0.1
        assert not scene.heart.tick()
    assert scene.heart.tick()
    assert scene.lost == []


def test_a_claim_without_a_beat_for_its_life_is_lost(scene: Scene) -> None:
    scene.keep("a")
    scene.now += 1
    scene.heart.tick()
    scene.keep("young")
    scene.failures = 9
    scene.now += TTL - 1
    scene.keep("younger")
    assert not scene.heart.tick()
    assert scene.lost == []
    scene.now += 1
    assert not scene.heart.tick()
    assert scene.lost == ["a", "young"]
    scene.failures = 0
    assert scene.heart.tick()
    assert scene.lost == ["a", "young"]


def test_life_counts_from_the_beginning_of_a_beat(scene: Scene) -> None:
    """Whoever watches saw the counter move no earlier than that, so the owner gives up first."""
    scene.keep("a")

    def slow() -> None:
        scene.now += 20

    scene.during = slow
    scene.heart.tick()
    assert [each.confirmed for each in scene.heart._kept.values()] == [100.0]


@pytest.mark.parametrize("taken", [set(), {"a"}])
def test_a_claim_that_ends_while_a_beat_is_under_way_is_not_lost(scene: Scene, taken: set[str]) -> None:
    """The step was committed; that its lease is gone then is no loss."""
    claim = scene.keep("a")
    scene.taken = taken

    def commit() -> None:
        with scene.lock:
            scene.heart.end(claim)

    scene.during = commit
    scene.heart.tick()
    assert scene.lost == []
    assert not scene.heart.busy()


def test_a_claim_that_ends_between_the_loss_and_the_report_is_not_reported(scene: Scene) -> None:
    claim = scene.keep("a")
    kept = scene.heart.find(claim)
    assert kept is not None
    with scene.lock:
        kept.lose()
        scene.heart.end(claim)
    scene.heart._tell(kept)
    assert scene.lost == []


def test_a_callback_that_fails_does_not_stop_the_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda found: reported.append(found.exc_value))
    error = ValueError("callback")

    def fail() -> None:
        raise error

    scene.heart.keep(Claim("x", "x", 1), fail, scene.lock, scene.now)
    scene.keep("a")
    scene.taken = {"x", "a"}
    scene.heart.tick()
    assert reported == [error]
    assert scene.lost == ["a"]


def thread_of(heart: Heart) -> threading.Thread | None:
    return heart._thread


def test_the_thread_comes_with_the_first_claim_and_goes_when_there_are_none() -> None:
    beaten = threading.Event()

    def beat(kept: Sequence[Kept]) -> None:
        if kept:
            beaten.set()

    heart = Heart(beat, 0.03)
    assert thread_of(heart) is None
    claim = Claim("a", "a", 1)
    heart.keep(claim, lambda: None, threading.RLock(), 0.0)
    first = thread_of(heart)
    assert first is not None
    assert beaten.wait(10)
    heart.end(claim)
    first.join(10)
    assert not first.is_alive()
    heart.keep(claim, lambda: None, threading.RLock(), 0.0)
    second = thread_of(heart)
    assert second is not None
    heart.close()
    assert not second.is_alive()
