"""The client that is current in this context: the one whose job this is, one set by hand, or the default."""

from __future__ import annotations

from contextlib import AbstractContextManager

from treadle.fray.protocol import Client
from treadle.kernel import Ambient

_CURRENT: Ambient[Client] = Ambient("fray client")


def current_client() -> Client:
    """The current client; where none is set and this is no job, the default one of the process.

    Raises:
        UnknownNameError: the settings name a default cluster that is not known; see `default_client`.
    """
    if _CURRENT.is_set:
        return _CURRENT.get()
    from treadle.fray.default import default_client  # here: it builds clients, which import this

    return default_client()


def has_current_client() -> bool:
    """Whether one is set, be it by hand or since this is a job."""
    return _CURRENT.is_set


def set_current_client(client: Client) -> AbstractContextManager[Client]:
    """Make `client` the current one for the length of a `with` block."""
    return _CURRENT.use(client)
