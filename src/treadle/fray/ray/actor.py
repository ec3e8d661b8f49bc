"""The handle of an actor of a Ray cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

import ray

from treadle.errors import UsageError
from treadle.fray.protocol import JobHandle
from treadle.fray.ray.job import RayJob
from treadle.fray.ray.task_future import ANSWER_S
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.ray.ticket import NAMESPACE, Fate
from treadle.fray.running_job import running_job
from treadle.fray.self_call import self_call_error

A = TypeVar("A")


class Caller(Protocol):
    """A client that actors are called by way of."""

    board: Any
    grace: float

    def call(self, actor: RayActor[Any], method: str, args: Any, kwargs: Any) -> RayJob[Any]:
        """Hand over one call."""
        ...


callers: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Who calls actors from this process, by the name of the board: the client, or the job that runs here."""


class RayActor(Generic[A]):
    """See `ActorHandle`. It can be sent to jobs of the same client."""

    def __init__(self, actor_id: str, board: str, host: Any = None) -> None:
        self._id = actor_id
        self._board = board
        self._terminated = False
        self._host = host or ray.get_actor(host_name(board, actor_id), namespace=NAMESPACE)

    @property
    def actor_id(self) -> str:
        """Unique within the client."""
        return self._id

    @property
    def host(self) -> Any:
        """The handle that Ray has for it."""
        return self._host

    @property
    def restarts(self) -> int:
        """How many times it was lost and made again."""
        fate: Fate = self._caller().board.fate.remote(self._id).future().result(ANSWER_S)
        return max(fate.made - 1, 0)

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Call a method; returns at once.

        Raises:
            ArgumentError: the client was shut down.
            NotSendableError: an argument cannot be pickled.
        """
        job = self._caller().call(self, method, args, kwargs)
        job.terminated = self._terminated  # so that it is not taken for lost
        return job

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """The method, which waits for its result when called."""
        if method.startswith("_"):
            raise AttributeError(f"an actor has no {method!r}: only public methods can be called")
        return partial(self._call_and_wait, method)

    def terminate(self) -> None:
        """Ask the call that runs to stop, interrupt it, and end the process; other calls fail."""
        self._terminated = True
        caller = self._caller()
        caller.board.order.remote(self._id, False)
        insist = partial(self._insist, self._host.idle.remote().future(), caller)
        threading.Thread(target=insist, name="treadle-terminate", daemon=True).start()

    def _insist(self, idle: Any, caller: Caller) -> None:
        try:
            idle.exception(caller.grace)
        except TimeoutError:
            if ray.is_initialized():
                caller.board.order.remote(self._id, True)
        with suppress(TimeoutError):
            idle.exception(caller.grace)
        if ray.is_initialized():
            ray.kill(self._host)

    def _call_and_wait(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        job = running_job()
        if isinstance(job, TaskJob) and job.ticket.ancestors[:1] == (self._id,):
            raise self_call_error(self._id, method)
        return self.submit(method, *args, **kwargs).result()

    def _caller(self) -> Caller:
        caller: Caller | None = callers.get(self._board)
        if caller is None:
            raise UsageError(
                f"actor {self._id}: it can be called by its client, and by jobs of that; the client was shut "
                "down, or this process has none"
            )
        return caller

    def __reduce__(self) -> tuple[Any, ...]:
        return RayActor, (self._id, self._board)

    def __repr__(self) -> str:
        return f"<actor {self._id}>"


def host_name(board: str, actor_id: str) -> str:
    """What Ray knows the host of the actor by."""
    return f"{board}/{actor_id}"
