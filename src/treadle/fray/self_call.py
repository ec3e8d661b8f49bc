"""The one wait that could never end: of a call of an actor for another call of the same actor."""

from __future__ import annotations

from treadle.errors import UsageError


def self_call_error(actor_id: str, method: str) -> UsageError:
    """The error of a call of the actor that would wait for `method` of the same actor."""
    return UsageError(
        f"actor {actor_id}: a call of it would wait for {method!r} of the same actor, which cannot begin "
        "before that call has ended: call the method of the object itself, or `submit` and do not wait"
    )
