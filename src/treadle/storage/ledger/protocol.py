"""What a ledger is: the truth about builds, leases and attempts of a store. Interfaces and records only.

A *place* is where a step puts its output: the path relative to the prefix, else the absolute one, with
forward slashes. A *build* is one committed output of a place. Builds of a place are numbered from 1, and
each number is committed once: that is the fence between two owners, and it needs no clock. Only the newest
build of a place can stand; it stands until it is withdrawn, and what is older is history. A *lease* says
who is at work on a place; it is there so that two owners do not do the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

AttemptOutcome: TypeAlias = Literal["done", "failed", "skipped", "cancelled", "lost"]


@dataclass(frozen=True, slots=True)
class Owner:
    """A process at work on a place.

    `since` is the ISO 8601 time in UTC at which it began; `machine` names the running system it is a
    process of, empty when unknown; `process_started` is in clock ticks since the boot of that system.
    """

    run: str
    host: str
    pid: int
    since: str
    machine: str
    process_started: int

    def describe(self) -> str:
        """The owner in words, for whoever waits."""
        run = f"run {self.run} on " if self.run else ""
        return f"{run}{self.host}, process {self.pid}, since {self.since}"


class Claim(NamedTuple):
    """The right to commit build `number` of `place`; `token` is unique to the claim."""

    place: str
    token: str
    number: int


class Held(NamedTuple):
    """Somebody else has the place."""

    place: str
    owner: Owner


class Entry(NamedTuple):
    """One committed build: two JSON texts, of which `head` is small and all that planning reads.

    `body` is empty where only heads were asked for. `stands`: it is the newest and was not withdrawn.
    """

    place: str
    number: int
    head: str
    body: str
    stands: bool = True


@dataclass(frozen=True, slots=True)
class AttemptNote:
    """How one attempt at a step ended. `started` is an ISO 8601 time in UTC; it took `seconds`."""

    run: str
    step_id: str
    name: str
    place: str
    attempt: int
    outcome: AttemptOutcome
    reason: str
    started: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunNote:
    """One run of a runner. Times are ISO 8601 in UTC, `ended` is empty while it lasts; counts by outcome."""

    run: str
    started: str
    ended: str
    host: str
    command: str
    counts: Mapping[str, int]


class Ledger(Protocol):
    """The ledger of one store; safe for threads, and after a fork.

    Every method raises LedgerError when the ledger itself cannot be read or written, and ArtifactError
    when a newer treadle wrote it or when what it should return is damaged.
    """

    @property
    def url(self) -> str:
        """What messages call it."""
        ...

    def latest(self, places: Iterable[str]) -> dict[str, Entry]:
        """The standing build of each of `places`, without its body; a place that has none is left out."""
        ...

    def body(self, place: str, number: int) -> str:
        """The body of one build, standing or not. Raises ArtifactError when there is no such build."""
        ...

    def builds(self, place: str) -> list[Entry]:
        """Every build of a place with its body, oldest first."""
        ...

    def places(self) -> Iterator[Entry]:
        """The standing build of every place, without its body, sorted by place."""
        ...

    def claim(self, place: str, on_lost: Callable[[], None], run: str = "") -> Claim | Held:
        """Take the lease of a place if it is free, or its owner has shown no life for its time to live.

        Until `commit` or `release` a heartbeat keeps the claim. When it is lost all the same, `on_lost` is
        called, once, from another thread. Does not wait for the owner.
        """
        ...

    def commit(
        self, claim: Claim, head: str, body: str, note: AttemptNote, publish: Callable[[], None] | None
    ) -> None:
        """Make the build stand, note the attempt and give up the lease, all or nothing.

        With `publish`, the former build is withdrawn first, for its files are about to be replaced; then
        `publish` is called at a moment when nobody else can commit. What it raises is passed on, and
        nothing is committed.

        Raises:
            LeaseLostError: the lease is another's or the number is taken; `publish` was not called.
        """
        ...

    def release(self, claim: Claim, note: AttemptNote | None = None) -> None:
        """Give up without a commit, and note the attempt. No error when the lease is lost already.

        Also when it raises, the claim is over, and this process can claim the place again at once.
        """
        ...

    def owners(self, places: Iterable[str]) -> dict[str, Owner]:
        """Who has a lease on each of `places`, dead or alive; a free place is left out."""
        ...

    def leases(self) -> Iterator[tuple[str, Owner]]:
        """Every lease there is, with its place and its owner, dead or alive; sorted by place."""
        ...

    def withdraw(self, place: str) -> None:
        """From now on the newest build does not stand; history keeps it."""
        ...

    def note(self, notes: Sequence[AttemptNote]) -> None:
        """Keep attempts that have no commit: failed, skipped, cancelled."""
        ...

    def attempts(
        self, place: str | None = None, run: str | None = None, limit: int | None = None
    ) -> list[AttemptNote]:
        """The attempts, newest first; of one place, of one run."""
        ...

    def last_attempts(self, places: Iterable[str]) -> dict[str, AttemptNote]:
        """The last attempt at each of `places`; a place without one is left out."""
        ...

    def places_of(self, step: str) -> list[str]:
        """The places, sorted, of the attempts at steps whose id begins with `step`."""
        ...

    def seconds(self, names: Iterable[str]) -> dict[str, float]:
        """How long the newest attempt with outcome "done" took for steps of each of these names, where known.

        Objects do not answer: it would take a look at every attempt there is.
        """
        ...

    def note_run(self, run: RunNote) -> None:
        """Keep a run; a later note of the same run replaces the earlier."""
        ...

    def runs(self, limit: int | None = None) -> list[RunNote]:
        """The runs, newest first."""
        ...

    def forget(self, place: str, numbers: Collection[int]) -> None:
        """Drop builds from the history. A number that was dropped is never given to another build."""
        ...

    def close(self) -> None:
        """Let go of files and threads; nothing while this process holds a claim. A later call reopens."""
        ...
