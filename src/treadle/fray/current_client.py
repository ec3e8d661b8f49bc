"""The client that is current in this context: the one whose job this is, or one set by hand."""

from __future__ import annotations

from contextlib import AbstractContextManager

from treadle.fray.protocol import Client
from treadle.kernel import Ambient

_CURRENT: Ambient[Client] = Ambient(
    "fray client", hint="Set one with `with set_current_client(client):`, or ask from inside a job."
)


def current_client() -> Client:
    """The current client.

    Raises:
        UsageError: none is set and this is not inside a job.
    """
    return _CURRENT.get()


def has_current_client() -> bool:
    """Whether `current_client` would give one."""
    return _CURRENT.is_set


def set_current_client(client: Client) -> AbstractContextManager[Client]:
    """Make `client` the current one for the length of a `with` block."""
    return _CURRENT.use(client)
