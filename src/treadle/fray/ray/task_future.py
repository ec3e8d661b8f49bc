"""The end of a job, made of the ends of the tasks that came with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

import ray

from treadle.errors import WorkerLostError
from treadle.fray.ending import cancelled
from treadle.fray.ray.callbacks import callbacks
from treadle.fray.ray.last_words import last_words
from treadle.fray.ray.losses import is_cancelled, is_loss, loss_error, translated
from treadle.fray.ray.ticket import Lot, Outcome, Start

ANSWER_S = 30.0
"""How long the board has to answer, in seconds."""

LAST_LOT = 1 << 30
"""The number of the lot that the worker could not send itself."""

changed = threading.Condition()
"""One for all jobs: few wait, and making one costs more than the rest of a job."""

Call = Callable[[], object]


class Desk(Protocol):
    """What a job needs of the client that has submitted it; `grace` as `RayClient` has it."""

    board: Any
    grace: float

    def heard(self, job_id: str, lots: int) -> None:
        """Return when so many lots of its output were passed on."""
        ...

    def adopt(self, job: Future[Any]) -> None:
        """Nobody holds the handle of a job that has not ended."""
        ...


class TaskFuture:
    """Several tasks may come with one job, in lanes; one of them carries it out.

    Its end is known when it was fetched, or is told of when it is followed. The outcome stays in the object
    store of the cluster until then.
    """

    __slots__ = ("__weakref__", "_calls", "_followed", "desk", "end", "job_id", "lanes", "terminated")

    def __init__(self, job_id: str, desk: Desk, lane: str = "", ref: Any = None) -> None:
        self.job_id = job_id
        self.desk = desk
        self.lanes: dict[str, Any] = {} if ref is None else {lane: ref}
        self.end: Outcome | BaseException | None = None
        self.terminated = False
        self._followed = ref is None  # a job that was not sent yet tells of its end itself
        self._calls: list[Call] = []

    @property
    def is_followed(self) -> bool:
        """Whether its end is told of, so that nobody has to fetch it."""
        return self._followed

    def follow(self, lane: str | None = None, ref: Any = None) -> None:
        """Be told of the end; with `ref`, take the outcome of that task for the job's as well."""
        with changed:
            new = {} if self._followed else dict(self.lanes)
            self._followed = True
            if lane is not None and self.end is None:
                self.lanes[lane] = new[lane] = ref
        for each, its_ref in new.items():
            its_ref.future().add_done_callback(partial(self._arrived, each))

    def call_at_end(self, call: Call) -> bool:
        """Whether `call()` will be made at the end, in a thread for such calls: there was none yet."""
        with changed:
            if self.end is None:
                self._calls.append(call)
                return True
        return False

    def finish(self, end: Outcome | BaseException) -> None:
        """This is the end, unless there was one before."""
        with changed:
            if self.end is not None:
                return
            self.end = end
            calls, self._calls = self._calls, []
            others = list(self.lanes.values()) if len(self.lanes) > 1 else []
            self.lanes = {}
            changed.notify_all()
        for call in calls:
            callbacks.put(call)
        for ref in others:
            ray.cancel(ref)

    def await_end(self, timeout: float | None) -> None:
        """Block until the end is known here."""
        with changed:
            changed.wait_for(lambda: self.end is not None, timeout)

    def fetch(self, timeout: float) -> None:
        """Wait for the task in this thread, which costs much less than being told of its end."""
        lanes = tuple(self.lanes.items())
        if len(lanes) != 1:  # it has ended, or is followed by now
            return
        ((lane, ref),) = lanes
        try:
            outcome: Outcome | bytes = ray.get(ref, timeout=timeout)
        except ray.exceptions.GetTimeoutError:
            return
        except Exception as error:  # noqa: BLE001 - told in words of treadle by `_failed`
            self._failed(lane, error)
        else:
            self._settle(lane, outcome)

    def await_lanes(self, timeout: float) -> None:
        """Wait for the tasks, so that Ray lends the processor of this one, until what came of it is here."""
        with changed:
            refs = list(self.lanes.values())
        ready = ray.wait(refs, timeout=timeout)[0] if refs else []
        with changed:
            changed.wait_for(lambda: self.end is not None or self._heard_of(ready), timeout)

    def ask(self, question: str, *args: Any, otherwise: Any) -> Any:
        """An answer of the board; a board that is lost knows nothing any more, which ends no job."""
        if not ray.is_initialized():  # a call of Ray would start a cluster
            return otherwise
        answer: Future[Any] = getattr(self.desk.board, question).remote(*args).future()
        try:
            return answer.result(ANSWER_S)
        except (ray.exceptions.RayError, TimeoutError):
            return otherwise

    def _heard_of(self, ready: list[Any]) -> bool:
        return not any(ref in ready for ref in self.lanes.values())

    def _arrived(self, lane: str, arrived: Future[Any]) -> None:
        """In a thread of Ray, which must go on."""
        error = arrived.exception()
        if error is None:
            self._settle(lane, arrived.result())
        else:
            threading.Thread(target=self._failed, args=(lane, error), daemon=True).start()

    def _settle(self, lane: str, given: Outcome | bytes) -> None:
        outcome = given if isinstance(given, Outcome) else Outcome(given)
        if outcome.packed is not None:
            self.terminated = self.terminated or outcome.stopped
            self.finish(outcome)
        else:
            self._leave(lane)

    def _failed(self, lane: str, error: BaseException) -> None:
        if (is_cancelled(error) and len(self.lanes) > 1) or (
            lane and is_loss(error) and self.ask("claimed", self.job_id, otherwise=lane) not in (lane, "")
        ):
            self._leave(lane)
        elif is_cancelled(error) or (self.terminated and is_loss(error)):
            self.finish(cancelled(self.job_id))
        else:
            self.finish(self._told(error))

    def _told(self, error: BaseException) -> BaseException:
        """The error in words of treadle; for a lost worker with the last lines of its log."""
        if not is_loss(error):
            return translated(f"job {self.job_id}", error)
        start: Start | None = self.ask("where", self.job_id, otherwise=None)
        if (found := last_words(self.job_id, start)) is not None:
            start = found.start
            if found.pieces:
                self.desk.board.report_output.remote(Lot(self.job_id, LAST_LOT, found.pieces, ()))
        return self._lost(error, start, self.ask("tail", self.job_id, 20, 0, otherwise=[]))

    def _lost(self, error: BaseException, start: Start | None, tail: Sequence[str]) -> WorkerLostError:
        return loss_error(self.job_id, error, start, tail, "or allow for more `losses`")

    def _leave(self, lane: str) -> None:
        with changed:
            self.lanes.pop(lane, None)
            changed.notify_all()
