"""Where handles from another process lead: to a client here, or to the driver of this worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from treadle.errors import ClusterError

if TYPE_CHECKING:
    from treadle.fray.protocol import Client


class Owner(Protocol):
    """What has actors: a client, or what stands for it in a worker."""

    def actor(self, actor_id: str) -> Any:
        """The handle of the actor of that id.

        Raises:
            ClusterError: there is none.
        """
        ...


_owners: WeakValueDictionary[str, Owner] = WeakValueDictionary()


def register_owner(client_key: str, owner: Owner) -> None:
    """What comes from the client of that key leads to this owner, in this process."""
    _owners[client_key] = owner


def find_actor(client_key: str, actor_id: str) -> Any:
    """The handle of an actor that was sent here.

    Raises:
        ClusterError: neither this process nor the one it works for has that client.
    """
    return _owner(client_key, f"actor {actor_id}").actor(actor_id)


def find_client(client_key: str) -> Client:
    """The client that was sent here, or what stands for it; see `find_actor`."""
    owner: Any = _owner(client_key, "the client")
    found: Client = owner
    return found


def _owner(client_key: str, what: str) -> Owner:
    owner = _owners.get(client_key)
    if owner is None:
        raise ClusterError(
            f"{what} is at home in another process, which cannot be reached from here: "
            "only jobs of the same client can use it"
        )
    return owner
