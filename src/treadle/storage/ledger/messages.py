"""What the ledgers say when something is wrong; all kinds of ledger say the same."""

from __future__ import annotations

from treadle.errors import ArtifactError, LeaseLostError
from treadle.storage.ledger.protocol import Claim, Owner


def lease_lost(url: str, claim: Claim, owner: Owner | None) -> LeaseLostError:
    """`owner`: who has the lease now, if anybody."""
    by = f"now {owner.describe()} has it" if owner is not None else "nobody has it now"
    return LeaseLostError(
        f"{claim.place}: cannot commit build {claim.number}: its lease was lost, {by} ({url}); "
        "this process showed no sign of life for longer than the lease lasts"
    )


def number_taken(url: str, claim: Claim) -> LeaseLostError:
    """Somebody else has committed this number."""
    return LeaseLostError(
        f"{claim.place}: cannot commit build {claim.number}: another owner has committed it ({url}); "
        "run again to use that one"
    )


def unknown_end(claim: Claim) -> str:
    """The answer to a commit never came."""
    return f"whether build {claim.number} of {claim.place} is committed is not known; the next run will see"


def damaged(url: str, place: str, number: int, reason: str = "its checksum is wrong") -> ArtifactError:
    """A build that cannot be trusted."""
    return ArtifactError(
        f"{url}: build {number} of {place} is damaged: {reason}; it is not used; "
        f"to build it again: treadle forget {place}"
    )


def no_such_build(url: str, place: str, number: int) -> ArtifactError:
    """A build that was asked for by number, and is not there."""
    return ArtifactError(
        f"{url}: there is no build {number} of {place}; it was forgotten, or never committed"
    )


def newer_format(url: str, found: object, known: int) -> ArtifactError:
    """Something that this treadle cannot read."""
    return ArtifactError(
        f"{url}: the ledger has format {found}, written by a newer treadle; "
        f"this one reads up to {known}: upgrade treadle"
    )
