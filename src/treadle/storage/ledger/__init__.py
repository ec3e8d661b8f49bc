"""The truth about builds, leases and attempts of a store."""

from treadle.storage.ledger.open import open_ledger
from treadle.storage.ledger.protocol import (
    AttemptNote,
    AttemptOutcome,
    Claim,
    Entry,
    Held,
    Ledger,
    Owner,
    RunNote,
)

__all__ = [
    "AttemptNote",
    "AttemptOutcome",
    "Claim",
    "Entry",
    "Held",
    "Ledger",
    "Owner",
    "RunNote",
    "open_ledger",
]
