"""Owners, leases and notes as texts and rows, and back; the checksums that tell a damaged build."""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

from treadle.storage.ledger.protocol import AttemptNote, Owner, RunNote
from treadle.storage.ledger.staleness import Lease

RELEASED = b'{"released": true}'
"""The last of the signs of life: the lease was given up."""

Row: TypeAlias = tuple[object, ...]

_KINDS = {"run": str, "host": str, "pid": int, "since": str, "machine": str, "process_started": int}
_UNKNOWN = Owner("", "an unknown host", 0, "an unknown time", "", 0)
_UNKNOWN_TTL = 60.0


@lru_cache(maxsize=8)  # a claim is made of little else
def owner_to_json(owner: Owner) -> str:
    """The owner as it stands in a lease."""
    return json.dumps(dataclasses.asdict(owner))


def owner_from_json(text: str) -> Owner:
    """The owner of a lease. One that cannot be read is unknown: its lease runs out like any other."""
    try:
        owner = Owner(**json.loads(text))
    except (ValueError, TypeError):
        return _UNKNOWN
    return owner if all(isinstance(getattr(owner, name), kind) for name, kind in _KINDS.items()) else _UNKNOWN


def sign_of_life(token: str, owner: Owner, ttl: float) -> bytes:
    """What each sign of life says while the claim `token` is kept; `ttl` in seconds."""
    return json.dumps({"token": token, "owner": owner_to_json(owner), "ttl": ttl}).encode()


def read_sign(content: bytes, generation: int) -> Lease | None:
    """The lease, None when it was given up. A sign of life that cannot be read is of an unknown owner."""
    try:
        found = json.loads(content)
        if "released" in found:
            return None
        return Lease(str(found["token"]), owner_from_json(found["owner"]), float(found["ttl"]), generation)
    except (ValueError, TypeError, KeyError):
        return Lease("", _UNKNOWN, _UNKNOWN_TTL, generation)


def note_row(note: AttemptNote) -> Row:
    """The fields of a note, in order."""
    # A reason is the text of any exception, and may hold what no file can.
    reason = note.reason.encode("utf-8", "backslashreplace").decode()
    start = (note.run, note.step_id, note.name, note.place, note.attempt, note.outcome)
    return (*start, reason, note.started, note.seconds)


def run_row(note: RunNote) -> Row:
    """The fields of a note of a run, in order; the counts as JSON."""
    return note.run, note.started, note.ended, note.host, note.command, json.dumps(dict(note.counts))


def head_sum(place: str, number: int, head: bytes) -> int:
    """The checksum of a head, which knows the build it belongs to."""
    return crc32(head, crc32(f"{place}\0{number}".encode()))


def body_sum(body: bytes) -> int:
    """The checksum of a body."""
    return crc32(body)
