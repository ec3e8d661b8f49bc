"""The leases of a ledger of objects.

A lease is a row of generations: each sign of life makes the next one. Whoever finds no life makes the
generation after the highest it sees, and the owner, whose next sign of life would have been that object,
learns by it that the lease is lost. After every new generation one looks again: made from an old view, it is
not the highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treadle.storage.ledger import names
from treadle.storage.ledger.bucket import Bucket
from treadle.storage.ledger.codec import RELEASED, read_sign
from treadle.storage.ledger.notes import NotedShelf
from treadle.storage.ledger.protocol import Claim, Owner
from treadle.storage.ledger.staleness import Lease


class LeasedShelf(NotedShelf):
    """See `Ledger`; who has what, and how a lease changes hands."""

    def owners(self, places: Iterable[str]) -> dict[str, Owner]:
        """See `Ledger`."""
        leases = self._each(lambda place: (place, self._look(place)[1]), places)
        return {place: lease.owner for place, lease in leases if lease is not None}

    def leases(self) -> Iterator[tuple[str, Owner]]:
        """See `Ledger`."""
        at_work = sorted(place for place, seen in self._listings().items() if seen.generation)
        return iter(self.owners(at_work).items())

    def _look(self, place: str) -> tuple[names.Listing, Lease | None]:
        """What there is of a place, and the lease of whoever makes its next build."""
        while True:
            seen = self._listing(place)
            if not seen.generation:
                return seen, None
            path = self._path(place, names.lease(seen.newest + 1, seen.generation))
            if (content := self._bucket.read(path)) is not None:
                return seen, read_sign(content, seen.generation)

    def _advance(self, claim: Claim, generation: int, content: bytes, bucket: Bucket) -> bool:
        """Make one generation of the lease; whether it is the highest, and its build is not there yet."""
        place, _, number = claim
        path = self._path(place, names.lease(number, generation))
        if not bucket.create(path, content):
            return False
        seen = names.listing(bucket.find(names.folder(place)))
        if (seen.newest, seen.generation) != (number - 1, generation):
            bucket.remove([path])
            return False
        # The one before stays: whoever saw it as the highest must fail to make this one.
        old = (each for each in seen.leases[number] if each < generation - 1)
        bucket.remove(self._path(place, names.lease(number, each)) for each in old)
        return True

    def _give_up_lease(self, claim: Claim) -> None:
        """The place is free, unless the lease is another's already."""
        while True:
            _, lease = self._look(claim.place)
            if lease is None or lease.token != claim.token:
                return
            if self._advance(claim, lease.beat + 1, RELEASED, self._bucket):
                return

    def _clear(self, place: str, seen: names.Listing, number: int) -> None:
        """Remove the leases of builds that are there. A beat under way may leave one for the next commit."""
        old = [
            (each, generation) for each in seen.leases if each <= number for generation in seen.leases[each]
        ]
        self._bucket.remove(self._path(place, names.lease(*each)) for each in old)
