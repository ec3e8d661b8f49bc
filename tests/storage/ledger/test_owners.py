"""Several owners on one store: threads, clients, processes; dead ones, paused ones, slow ones."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from treadle.errors import LeaseLostError
from treadle.storage.ledger import AttemptNote, Claim, Held, Ledger

if TYPE_CHECKING:
    from tests.storage.ledger.conftest import Store

Note = Callable[..., AttemptNote]
processes = pytest.mark.parametrize("store", ["sqlite", "objects-local", "objects-s3"], indirect=True)
slow_s3 = pytest.param("objects-s3", marks=pytest.mark.slow)
processes_slow_on_s3 = pytest.mark.parametrize("store", ["sqlite", "objects-local", slow_s3], indirect=True)
SHORT = 0.5


def nothing() -> None:
    pass


def take(client: Ledger, place: str = "a", on_lost: Callable[[], None] = nothing) -> Claim:
    claim = client.claim(place, on_lost, "r1")
    assert isinstance(claim, Claim), claim
    return claim


def test_of_many_threads_one_gets_the_place(store: "Store") -> None:
    clients = [store.client() for _ in range(2)]
    start = threading.Barrier(8)

    def race(number: int) -> Claim | Held:
        start.wait()
        return clients[number % 2].claim("a", nothing)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(race, range(8)))
    (winner,) = [each for each in found if isinstance(each, Claim)]
    assert winner.number == 1


@processes_slow_on_s3
def test_of_many_processes_one_gets_the_place(store: "Store") -> None:
    actors = [store.actor() for _ in range(4)]
    for actor in actors:
        actor.tell("claim", "a")
    answers = [actor.hear() for actor in actors]
    winner = answers.index("1")
    assert [each for each in answers if each != "1"] == [f"held by process {actors[winner].process.pid}"] * 3


@processes
def test_a_killed_owner_is_followed_at_once(store: "Store", note: Note) -> None:
    """Its lease has half an hour to live; on its own machine one can see that it is dead."""
    actor, client = store.actor(ttl=1800), store.client()
    assert actor.ask("claim", "a") == "1"
    assert isinstance(client.claim("a", nothing), Held)
    actor.kill()
    claim = take(client)
    client.commit(claim, "mine", "{}", note("a"), None)
    assert client.latest(["a"])["a"].head == "mine"


@processes
def test_a_paused_owner_learns_that_it_lost_and_cannot_commit(
    store: "Store", note: Note, tmp_path: Path
) -> None:
    paused, client = store.actor(ttl=SHORT), store.client()
    assert paused.ask("claim", "a") == "1"
    paused.pause()
    claim = _wait_for(client)
    paused.wake()
    assert paused.ask("wait_until_lost", "a") == "lost"
    assert paused.ask("commit", "a", "theirs", str(tmp_path)) == "lost"
    assert not (tmp_path / "output").exists()
    client.commit(claim, "mine", "{}", note("a"), None)
    assert [each.head for each in client.builds("a")] == ["mine"]


@processes
def test_a_paused_owner_cannot_commit_after_the_next_has(store: "Store", note: Note, tmp_path: Path) -> None:
    paused, client = store.actor(ttl=SHORT), store.client()
    assert paused.ask("claim", "a") == "1"
    paused.pause()
    client.commit(_wait_for(client), "mine", "{}", note("a"), None)
    paused.wake()
    assert paused.ask("commit", "a", "theirs", str(tmp_path)) == "lost"
    assert paused.ask("claim", "a") == "2"
    assert client.latest(["a"])["a"].head == "mine"


def _wait_for(client: Ledger) -> Claim:
    """Try until the owner counts as dead, which the client's own clock decides."""
    pause = threading.Event()
    while isinstance(found := client.claim("a", nothing), Held):
        pause.wait(SHORT / 10)
    return found


@processes_slow_on_s3
def test_a_living_owner_keeps_its_place_for_longer_than_a_life(store: "Store") -> None:
    life = 3.0 if store.kind == "objects-s3" else 1.5
    owner, client = store.actor(ttl=life), store.client()
    assert owner.ask("claim", "a") == "1"
    pause = threading.Event()
    for _ in range(12):
        assert isinstance(client.claim("a", nothing), Held)
        pause.wait(life / 10)
    assert owner.ask("is_lost", "a") == "False"
    assert owner.ask("commit", "a", "theirs") == "committed"


@pytest.mark.parametrize(
    "store", ["sqlite", "memory", "objects-local", "objects-memory", slow_s3], indirect=True
)
def test_short_claims_are_never_reported_lost(store: "Store", note: Note) -> None:
    """A heartbeat that looks just when a claim ends well must not take it for lost."""
    rounds = 1000 if store.kind in ("sqlite", "memory") else 30
    client, lost = store.client(ttl=0.003 if store.kind == "sqlite" else 0.5), list[int]()
    for number in range(rounds):
        claim = take(client, f"place-{number % 7}", lambda number=number: lost.append(number))  # type: ignore[misc]
        if number % 3:
            client.commit(claim, "{}", "{}", note(claim.place), None)
        else:
            client.release(claim)
    client.close()
    assert lost == []
    assert client.owners([f"place-{number}" for number in range(7)]) == {}


RELEASE_ON_A_FULL_DISK = """
import resource, sys
from treadle.errors import LedgerError
from treadle.storage.ledger.objects import ObjectLedger
from treadle.storage.ledger.sqlite import SqliteLedger

kind, url = sys.argv[1:]
ledger = SqliteLedger(f"{url}/ledger.db", 1800.0) if kind == "sqlite" else ObjectLedger(url, 1800.0)
claim = ledger.claim("a", print)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
try:
    ledger.release(claim)
except LedgerError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    print(type(ledger.claim("a", print)).__name__)
"""


@pytest.mark.parametrize("kind", ["sqlite", "objects"])
def test_a_claim_whose_release_failed_does_not_keep_this_process_out(kind: str, tmp_path: Path) -> None:
    """Its lease is in the ledger for half an hour, and this process knows that nobody is behind it."""
    command = [sys.executable, "-c", RELEASE_ON_A_FULL_DISK, kind, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "Claim\n"


@pytest.mark.parametrize("store", ["sqlite", "objects-local", "objects-memory"], indirect=True)
def test_a_commit_says_who_has_the_place_now(store: "Store", note: Note) -> None:
    slow, quick = store.client(ttl=0.001), store.client()
    lost = threading.Event()
    claim = take(slow, on_lost=lost.set)
    slow._heart.close()  # type: ignore[attr-defined]
    while isinstance(quick.claim("a", nothing), Held):
        pass
    with pytest.raises(LeaseLostError, match=r"now .*, process .* has it"):
        slow.commit(claim, "{}", "{}", note("a"), None)
