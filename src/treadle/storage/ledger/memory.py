"""The ledger of a store in memory: dictionaries under a lock, for one process and as long as it lives."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count, islice

from treadle.storage.ledger.fork import reset_after_fork
from treadle.storage.ledger.messages import lease_lost, no_such_build
from treadle.storage.ledger.process import this_owner
from treadle.storage.ledger.protocol import AttemptNote, Claim, Entry, Held, Owner, RunNote


class MemoryLedger:
    """See `Ledger`. Its owners are the threads of one process, so no lease is ever stale or lost."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.RLock()
        self._builds: dict[str, list[Entry]] = defaultdict(list)
        self._newest: dict[str, int] = defaultdict(int)
        self._leases: dict[str, tuple[str, Owner]] = {}
        self._attempts: list[AttemptNote] = []
        self._attempts_at: dict[str, list[AttemptNote]] = defaultdict(list)
        self._runs: dict[str, RunNote] = {}
        self._tokens = count(1)
        reset_after_fork(self)

    def latest(self, places: Iterable[str]) -> dict[str, Entry]:
        """See `Ledger`."""
        with self._lock:
            found = {place: entry for place in places if (entry := self._standing(place)) is not None}
        return {place: entry._replace(body="") for place, entry in found.items()}

    def body(self, place: str, number: int) -> str:
        """See `Ledger`."""
        for entry in self.builds(place):
            if entry.number == number:
                return entry.body
        raise no_such_build(self.url, place, number)

    def builds(self, place: str) -> list[Entry]:
        """See `Ledger`."""
        with self._lock:
            return list(self._builds.get(place, ()))

    def places(self) -> Iterator[Entry]:
        """See `Ledger`."""
        with self._lock:
            standing = self.latest(sorted(self._builds))
        return iter(standing.values())

    def claim(self, place: str, on_lost: Callable[[], None], run: str = "") -> Claim | Held:  # noqa: ARG002
        """See `Ledger`; `on_lost` is never called."""
        with self._lock:
            if (held := self._leases.get(place)) is not None:
                return Held(place, held[1])
            token = str(next(self._tokens))
            self._leases[place] = (token, this_owner(run))
            return Claim(place, token, self._newest[place] + 1)

    def commit(
        self, claim: Claim, head: str, body: str, note: AttemptNote, publish: Callable[[], None] | None
    ) -> None:
        """See `Ledger`."""
        place, _, number = claim
        with self._lock:
            if not self._is_ours(claim):
                raise lease_lost(self.url, claim, self.owners([place]).get(place))
            self.withdraw(place)
            if publish is not None:
                publish()
            self._builds[place].append(Entry(place, number, head, body))
            self._newest[place] = number
            del self._leases[place]
            self.note([note])

    def release(self, claim: Claim, note: AttemptNote | None = None) -> None:
        """See `Ledger`."""
        with self._lock:
            if self._is_ours(claim):
                del self._leases[claim.place]
            if note is not None:
                self.note([note])

    def owners(self, places: Iterable[str]) -> dict[str, Owner]:
        """See `Ledger`."""
        with self._lock:
            return {place: self._leases[place][1] for place in places if place in self._leases}

    def leases(self) -> Iterator[tuple[str, Owner]]:
        """See `Ledger`."""
        with self._lock:
            return iter(sorted((place, owner) for place, (_, owner) in self._leases.items()))

    def withdraw(self, place: str) -> None:
        """See `Ledger`."""
        with self._lock:
            if self._standing(place) is not None:
                self._builds[place][-1] = self._builds[place][-1]._replace(stands=False)

    def note(self, notes: Sequence[AttemptNote]) -> None:
        """See `Ledger`."""
        with self._lock:
            self._attempts += notes
            for each in notes:
                self._attempts_at[each.place].append(each)

    def attempts(
        self, place: str | None = None, run: str | None = None, limit: int | None = None
    ) -> list[AttemptNote]:
        """See `Ledger`."""
        with self._lock:
            notes = list(self._attempts if place is None else self._attempts_at.get(place, ()))
        return list(islice((each for each in reversed(notes) if run in (None, each.run)), limit))

    def last_attempts(self, places: Iterable[str]) -> dict[str, AttemptNote]:
        """See `Ledger`."""
        with self._lock:
            return {place: notes[-1] for place in places if (notes := self._attempts_at.get(place))}

    def places_of(self, step: str) -> list[str]:
        """See `Ledger`."""
        return sorted({each.place for each in self.attempts() if each.step_id.startswith(step)})

    def seconds(self, names: Iterable[str]) -> dict[str, float]:
        """See `Ledger`."""
        wanted = set(names)
        with self._lock:
            done = [each for each in self._attempts if each.outcome == "done" and each.name in wanted]
        return {each.name: each.seconds for each in done}

    def note_run(self, run: RunNote) -> None:
        """See `Ledger`."""
        with self._lock:
            self._runs[run.run] = run

    def runs(self, limit: int | None = None) -> list[RunNote]:
        """See `Ledger`."""
        with self._lock:
            notes = list(self._runs.values())
        return sorted(notes, key=lambda each: (each.started, each.run), reverse=True)[:limit]

    def forget(self, place: str, numbers: Collection[int]) -> None:
        """See `Ledger`."""
        with self._lock:
            if place in self._builds:
                self._builds[place] = [each for each in self._builds[place] if each.number not in numbers]

    def close(self) -> None:
        """Nothing: what is in memory stays there until the process ends."""

    def is_present(self) -> bool:
        """Always."""
        return True

    def reset(self) -> None:
        """In a forked child: the builds stay, the leases are the parent's."""
        self._lock = threading.RLock()
        self._leases.clear()

    def _standing(self, place: str) -> Entry | None:
        builds = self._builds.get(place)
        return builds[-1] if builds and builds[-1].stands else None

    def _is_ours(self, claim: Claim) -> bool:
        lease = self._leases.get(claim.place)
        return lease is not None and lease[0] == claim.token
