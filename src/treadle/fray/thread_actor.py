"""Actors on threads: an object of this process, whose calls run one at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from treadle.fray.mailbox import Mailbox
from treadle.fray.protocol import ActorRequest, JobHandle
from treadle.fray.running_job import running_job
from treadle.fray.self_call import self_call_error
from treadle.fray.slots import Slots
from treadle.fray.thread_job import ThreadJob

A = TypeVar("A")


class ThreadActor(Generic[A]):
    """An actor of a `ThreadClient`; see `ActorHandle`. It is never lost, so it is made once.

    `new_job(name, fn)` makes the job of a call, and refuses once the client was shut down.
    """

    def __init__(
        self,
        actor_id: str,
        request: ActorRequest[A],
        slots: Slots,
        new_job: Callable[[str, Callable[[], Any]], ThreadJob[Any]],
    ) -> None:
        self._id = actor_id
        self._slots = slots
        self._new_job = new_job
        self._mailbox: Mailbox[ThreadJob[Any]] = Mailbox(self._begin)
        self._terminated = False
        self._runs: ThreadJob[Any] | None = None
        self._made: ThreadJob[A] = new_job(f"{actor_id}.make", request.make)
        self._mailbox.put(self._made)

    @property
    def actor_id(self) -> str:
        """Unique within the client."""
        return self._id

    @property
    def restarts(self) -> int:
        """None: what is in this process is not lost without it."""
        return 0

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Call a method; returns at once. Where `make` has failed, the call fails with the same error.

        Raises:
            ArgumentError: the client was shut down.
        """
        job = self._new_job(f"{self._id}.{method}", partial(_call, self._made, method, args, kwargs))
        self._mailbox.put(job)
        if self._terminated:
            job.terminate()
        return job

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """The method, which waits for its result when called."""
        if method.startswith("_"):
            raise AttributeError(f"an actor has no {method!r}: only public methods can be called")
        return partial(self._call_and_wait, method)

    def terminate(self) -> None:
        """Calls that have not begun, and later ones, are stopped; the one that runs is asked to."""
        self._terminated = True
        for job in self._mailbox.clear():
            job.terminate()
        if (runs := self._runs) is not None:
            runs.terminate()

    def __repr__(self) -> str:
        return f"<actor {self._id}>"

    def _call_and_wait(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        here = running_job()
        if here is not None and here is self._runs:
            raise self_call_error(self._id, method)
        return self.submit(method, *args, **kwargs).result()

    def _begin(self, job: ThreadJob[Any]) -> bool:
        if self._terminated:
            job.terminate()
        if job.future.done():
            return False
        try:
            self._slots.start(partial(self._carry_out, job))
        except BaseException as error:  # noqa: BLE001 - it is the outcome of this call; others may fare better
            job.fail(error)
            return False
        return True

    def _carry_out(self, job: ThreadJob[Any]) -> None:
        self._runs = job
        if self._terminated:
            job.terminate()
        job.run()
        self._runs = None
        self._mailbox.ended()


def _call(made: ThreadJob[Any], method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return getattr(made.result(), method)(*args, **kwargs)
