"""The truth about builds, leases and attempts of a store."""

from treadle.storage.ledger.open import close_ledger, open_ledger
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
    "close_ledger",
    "open_ledger",
]
