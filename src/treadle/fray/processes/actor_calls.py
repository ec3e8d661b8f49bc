"""What handles of actors have in common on both sides, and the object itself in its worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from treadle.fray.parcel import pack_call
from treadle.fray.protocol import ActorRequest, JobHandle
from treadle.fray.self_call import self_call_error


class ActorCalls:
    """Methods by their names, and how a handle is sent: it is found again by its id where it arrives."""

    def __init__(self, client_key: str, actor_id: str) -> None:
        self._client_key = client_key
        self._id = actor_id

    @property
    def actor_id(self) -> str:
        """Unique within the client."""
        return self._id

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Call a method; see `ActorHandle`."""
        raise NotImplementedError

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """The method, which waits for its result when called."""
        if method.startswith("_"):
            raise AttributeError(f"an actor has no {method!r}: only public methods can be called")
        return partial(self._call_and_wait, method)

    def __reduce__(self) -> tuple[Any, ...]:
        from treadle.fray.processes.addresses import find_actor  # here: that knows both kinds of handles

        return find_actor, (self._client_key, self._id)

    def __repr__(self) -> str:
        return f"<actor {self._id}>"

    def _call_and_wait(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        if _runs_here == self._id:
            raise self_call_error(self._id, method)
        return self.submit(method, *args, **kwargs).result()


_object: Any = None
_runs_here: str | None = None


def pack_make(request: ActorRequest[Any]) -> bytes:
    """The call that makes the object.

    Raises:
        NotSendableError: `make` cannot be pickled.
    """
    make = request.make
    return pack_call(request.name, partial(make_object, make), kind="actor", parts=[("", make)])


def pack_method(actor_id: str, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """The call of a method.

    Raises:
        NotSendableError: an argument cannot be pickled.
    """
    call = partial(call_object, actor_id, method, args, kwargs)
    numbered = ((f"argument {place}", each) for place, each in enumerate(args, 1))
    named = ((f"argument {name!r}", each) for name, each in kwargs.items())
    return pack_call(f"{actor_id}.{method}", call, kind="call", parts=[*numbered, *named])


def make_object(make: Callable[[], Any]) -> None:
    """In the worker of an actor: make the object, and keep it."""
    global _object
    _object = make()


def call_object(actor_id: str, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In the worker of an actor: call a method of the object."""
    global _runs_here
    _runs_here = actor_id
    return getattr(_object, method)(*args, **kwargs)
