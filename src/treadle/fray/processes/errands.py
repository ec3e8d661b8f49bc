"""What the driver does for a job that asks for it from its worker: children, their logs, their end."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from treadle.fray.parcel import pack_error, pack_result
from treadle.fray.processes.channel import Data, Kind
from treadle.fray.protocol import ActorRequest, JobHandle, JobRequest
from treadle.fray.resources import ResourceConfig

if TYPE_CHECKING:
    from treadle.fray.processes.process_actor import ProcessActor
    from treadle.fray.processes.process_job import ProcessJob


class Household(Protocol):
    """The client of the job, as far as the job may ask things of it."""

    @property
    def max_workers(self) -> int:
        """How many jobs run at once."""
        ...

    def resources(self) -> ResourceConfig:
        """What there is in all."""
        ...

    def submit_packed(self, request: JobRequest[Any], call: Data, parent: ProcessJob[Any]) -> ProcessJob[Any]:
        """Hand over a child of `parent`."""
        ...

    def create_packed(self, request: ActorRequest[Any], make: Data) -> ProcessActor[Any]:
        """Make an actor."""
        ...

    def actor(self, actor_id: str) -> ProcessActor[Any]:
        """The actor of that id."""
        ...


class Recipient(Protocol):
    """Where messages for the job go."""

    def post(self, kind: Kind, number: int, data: Data = b"") -> None:
        """Have a message sent to the worker; from any thread."""
        ...


class Errands:
    """The errands of one job, whichever worker it is in. The worker numbers the children."""

    def __init__(self, job: ProcessJob[Any], household: Household) -> None:
        self._job = job
        self._household = household
        self._children: dict[int, ProcessJob[Any]] = {}
        self._all: WeakSet[ProcessJob[Any]] | None = None  # with those whose handles are forgotten

    def answer(self, back: Recipient, question: Data) -> bytes:
        """Do what is asked, and give what came of it, packed."""
        try:
            verb, args = pickle.loads(question)  # noqa: S301 - from a worker of this process
            return pack_result(getattr(self, f"_{verb}")(back, *args))
        except Exception as error:  # noqa: BLE001 - raised where it was asked
            return pack_error(error, traced=False)

    def forget(self, child: int) -> None:
        """Nobody in the worker has the handle of this child any more."""
        self._children.pop(child, None)

    def abandon(self) -> None:
        """The worker of the job is lost: what it has submitted ends, unless it is detached."""
        for child in tuple(self._all or ()):
            if not child.detached:
                child.terminate()

    def _max_workers(self, _: Recipient) -> int:
        return self._household.max_workers

    def _resources(self, _: Recipient) -> ResourceConfig:
        return self._household.resources()

    def _submit(self, back: Recipient, number: int, request: JobRequest[Any], call: bytes) -> str:
        return self._adopt(back, number, self._household.submit_packed(request, call, self._job))

    def _create_actor(self, _: Recipient, request: ActorRequest[Any], make: bytes) -> str:
        return self._household.create_packed(request, make).actor_id

    def _call_actor(self, back: Recipient, number: int, actor_id: str, method: str, call: bytes) -> str:
        child = self._household.actor(actor_id).submit_packed(method, call, self._job)
        return self._adopt(back, number, child)

    def _actor_restarts(self, _: Recipient, actor_id: str) -> int:
        return self._household.actor(actor_id).restarts

    def _terminate_actor(self, _: Recipient, actor_id: str) -> None:
        self._household.actor(actor_id).terminate()

    def _adopt(self, back: Recipient, number: int, child: ProcessJob[Any]) -> str:
        self._children[number] = child
        if self._all is None:  # few jobs have children
            self._all = WeakSet()
        self._all.add(child)
        child.add_done_callback(partial(_tell, back, number))
        return child.job_id

    def _logs(self, _: Recipient, number: int, max_lines: int) -> list[str]:
        return self._children[number].logs(max_lines)

    def _terminate(self, _: Recipient, number: int) -> None:
        self._children[number].terminate()


def _tell(back: Recipient, number: int, child: JobHandle[Any]) -> None:
    back.post(Kind.ENDED, number, child.forwarded())  # type: ignore[attr-defined]
