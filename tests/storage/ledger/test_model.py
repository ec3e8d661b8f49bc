"""Two clients on one store, in any order of what they can do, against dictionaries of what must hold."""

import shutil
import tempfile
from collections.abc import Callable
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from treadle.errors import LeaseLostError
from treadle.storage.ledger import AttemptNote, Claim, Held
from treadle.storage.ledger.objects import ObjectLedger
from treadle.storage.ledger.sqlite import SqliteLedger
from treadle.storage.ledger.staleness import Watcher

TTL = 1000.0
CLIENTS = st.integers(0, 1)
PLACES = st.sampled_from(["a", "b"])
Client = SqliteLedger | ObjectLedger


class TwoClients(RuleBasedStateMachine):
    """`leases`: who has a place; `claims`: what each client believes to have; `builds`: head and standing."""

    def make(self) -> Client:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.name = uuid4().hex
        self.now = 0.0
        self.clients = [self.make(), self.make()]
        self._watch()
        self.leases: dict[str, Claim] = {}
        self.claims: dict[tuple[int, str], Claim] = {}
        self.builds: dict[str, list[tuple[str, bool]]] = {"a": [], "b": []}
        self.lost: list[str] = []
        self.must_be_lost: set[str] = set()

    def _watch(self) -> None:
        """Nobody has seen any lease yet."""
        for client in self.clients:
            client._watcher = Watcher(lambda: self.now)

    def teardown(self) -> None:
        for client in self.clients:
            client._heart._kept.clear()
            client.close()
        shutil.rmtree(self.folder)

    def _claimed(self, who: int, place: str, found: Claim | Held) -> None:
        assert isinstance(found, Claim)
        assert found.number == len(self.builds[place]) + 1
        self.leases[place] = self.claims[who, place] = found

    def _try(self, who: int, place: str) -> Claim | Held:
        key: list[str] = []
        found = self.clients[who].claim(place, lambda: self.lost.append(key[0]), f"run {who}")
        if isinstance(found, Claim):
            key.append(found.token)
        return found

    @rule(who=CLIENTS, place=PLACES)
    def claim(self, who: int, place: str) -> None:
        found = self._try(who, place)
        if place in self.leases:
            assert isinstance(found, Held)
        else:
            self._claimed(who, place, found)

    @rule(who=CLIENTS, place=PLACES)
    def take_over(self, who: int, place: str) -> None:
        if place not in self.leases:
            return
        assert isinstance(self._try(who, place), Held)
        self.now += TTL
        old = self.leases[place]
        self._claimed(who, place, self._try(who, place))
        self._watch()  # as if the other places had shown life in between
        self.must_be_lost.add(old.token)

    @rule(who=CLIENTS, place=PLACES, publishes=st.booleans())
    def commit(self, who: int, place: str, publishes: bool) -> None:
        claim = self.claims.pop((who, place), None)
        if claim is None:
            return
        head, published = f"{who}-{claim.number}-{len(self.builds[place])}", list[str]()
        note = AttemptNote("r", place, place, place, 1, "done", "", "2026-01-01T00:00:00+00:00", 0.1)
        publish: Callable[[], None] | None = (lambda: published.append(head)) if publishes else None
        mine = self.leases.get(place) == claim
        try:
            self.clients[who].commit(claim, head, "{}", note, publish)
        except LeaseLostError:
            assert not mine
            assert not published
            self.must_be_lost.discard(claim.token)
            return
        assert mine
        assert bool(published) == publishes
        self.builds[place].append((head, True))
        del self.leases[place]

    @rule(who=CLIENTS, place=PLACES)
    def release(self, who: int, place: str) -> None:
        claim = self.claims.pop((who, place), None)
        if claim is None:
            return
        self.clients[who].release(claim)
        if self.leases.get(place) == claim:
            del self.leases[place]
        self.must_be_lost.discard(claim.token)

    @rule(who=CLIENTS, place=PLACES)
    def withdraw(self, who: int, place: str) -> None:
        self.clients[who].withdraw(place)
        if self.builds[place]:
            self.builds[place][-1] = (self.builds[place][-1][0], False)

    @rule(who=CLIENTS)
    def beat(self, who: int) -> None:
        client = self.clients[who]
        mine = {each.claim.token for each in client._heart._kept.values()}
        assert client._heart.tick()
        assert mine & self.must_be_lost <= set(self.lost)
        self.must_be_lost -= mine

    @invariant()
    def all_agree(self) -> None:
        standing = {place: each[-1][0] for place, each in self.builds.items() if each and each[-1][1]}
        for client in self.clients:
            assert {place: each.head for place, each in client.latest(["a", "b"]).items()} == standing
            assert sorted(client.owners(["a", "b"])) == sorted(self.leases)
            for place in "ab":
                assert [each.head for each in client.builds(place)] == [
                    each[0] for each in self.builds[place]
                ]
        assert len(self.lost) == len(set(self.lost))
        live = {each.token for each in self.leases.values()}
        assert not live & set(self.lost)


class OnSqlite(TwoClients):
    def make(self) -> Client:
        return SqliteLedger(f"{self.folder}/ledger.db", TTL)


class OnObjects(TwoClients):
    def make(self) -> Client:
        return ObjectLedger(f"memory://{self.name}", TTL)


class OnSharedDisk(TwoClients):
    def make(self) -> Client:
        return ObjectLedger(self.folder, TTL)


@pytest.mark.parametrize("machine", [OnSqlite, OnObjects, OnSharedDisk])
def test_two_clients_agree_with_the_model(machine: type[TwoClients]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=30, stateful_step_count=30, deadline=None)
    )
