"""The work of the first case, as functions of one row: every tool that calls Python calls these."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

FEWEST, MOST = 20, 5000


def clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its text in NFC, one space between words, in lower case; and how many words it has."""
    words = unicodedata.normalize("NFC", row["text"]).lower().split()
    return {**row, "text": " ".join(words), "words": len(words)}


def is_kept(row: Mapping[str, Any]) -> bool:
    """Whether it has neither too few words nor too many."""
    return FEWEST <= row["words"] <= MOST
