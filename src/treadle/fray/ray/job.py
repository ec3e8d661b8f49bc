"""A job of a Ray cluster, for whoever has submitted it.

The outcome stays in the object store of the cluster until somebody asks for it, or for being told of the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import nullcontext
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

import ray

from treadle.fray.checks import check_count
from treadle.fray.parcel import open_outcome
from treadle.fray.protocol import JobHandle, JobStatus
from treadle.fray.ray.herald import herald
from treadle.fray.ray.last_words import last_words
from treadle.fray.ray.losses import is_cancelled, is_loss, translated
from treadle.fray.ray.task_job import TaskJob
from treadle.fray.ray.ticket import Lot, Outcome, Start
from treadle.fray.running_job import parked, running_job

T = TypeVar("T")

GRACE_S = 3.0
"""How long a job has to end, in seconds, once it was asked to, and again once it was interrupted."""

ANSWER_S = 30.0
"""How long the board has to answer, in seconds."""

LOOK_S = 5.0
"""How often a wait inside of Ray looks whether the cluster was lost, which Ray does not tell, in seconds."""

LAST_LOT = 1 << 30
"""The number of the lot that the worker could not send itself."""

_changed = threading.Condition()  # one for all: few wait, and making one costs more than the rest of a job


Cancel = Callable[[bool], object]
"""Keeps a task from beginning or, when it is True, kills its worker."""


class Desk(Protocol):
    """What a job needs of the client that has submitted it."""

    board: Any

    def heard(self, job_id: str, lots: int) -> None:
        """Return when so many lots of its output were passed on."""
        ...

    def adopt(self, job: Future[Any]) -> None:
        """Nobody holds the handle of a job that has not ended."""
        ...


class RayJob(Generic[T]):
    """See `JobHandle`. Several tasks may come with one job, in lanes; one of them carries it out.

    `cancel` does it where `ray.cancel` cannot.
    """

    __slots__ = (
        "__weakref__",
        "_began",
        "_callbacks",
        "_cancel_by",
        "_desk",
        "_end",
        "_followed",
        "_id",
        "_lanes",
        "_opened",
        "terminated",
    )

    def __init__(
        self,
        job_id: str,
        desk: Desk,
        lane: str = "",
        ref: Any = None,
        cancel: Cancel | None = None,
    ) -> None:
        self._id = job_id
        self._desk = desk
        self._cancel_by = cancel
        self._lanes: dict[str, Any] = {} if ref is None else {lane: ref}
        self._followed = ref is None  # a job that was not sent yet tells of its end itself
        self._callbacks: list[Callable[[JobHandle[Any]], object]] = []
        self._end: Outcome | BaseException | None = None
        self._began = False
        self._opened: tuple[Any] | BaseException | None = None
        self.terminated = False

    @property
    def job_id(self) -> str:
        """Unique within the client."""
        return self._id

    @property
    def ended(self) -> bool:
        """Whether it is known here that it has ended."""
        return self._end is not None

    def status(self) -> JobStatus:
        """Where the job stands; see `JobStatus`."""
        if self._end is None and not self._followed:
            self._await(0)
        end = self._end
        if end is None:
            return JobStatus.RUNNING if self._has_begun() else JobStatus.PENDING
        if isinstance(end, CancelledError):
            return JobStatus.STOPPED
        if isinstance(end, Outcome) and end.packed is not None and end.packed[:1] == b"=":
            return JobStatus.SUCCEEDED
        return JobStatus.STOPPED if self.terminated else JobStatus.FAILED

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = False) -> JobStatus:
        """Block until the end; see `JobHandle`."""
        if self._end is None:
            self._await(timeout)
        if self._end is None:
            raise TimeoutError(f"job {self._id} has not ended after {timeout} s")
        if isinstance(self._end, Outcome) and self._end.lots:
            self._desk.heard(self._id, self._end.lots)
        if raise_on_failure:
            self._open()
        return self.status()

    def result(self, timeout: float | None = None) -> T:
        """Block until the end and give what the job gave; see `JobHandle`."""
        self.wait(timeout)
        return cast("T", self._open())

    def add_done_callback(self, callback: Callable[[JobHandle[Any]], object]) -> None:
        """Call `callback(self)` at the end, in a thread that is for callbacks only."""
        with _changed:
            if self._end is None:
                self._callbacks.append(callback)
                callback = _nothing
        callback(self)
        self.follow()

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines of what the job printed; see `JobHandle`."""
        check_count("max_lines", max_lines)
        lots = self._end.lots if isinstance(self._end, Outcome) else 0
        lines: list[str] = self._ask("tail", self._id, max_lines, lots, otherwise=[])
        return lines

    def terminate(self) -> None:
        """Ask the job to stop, interrupt it when it does not, and kill it when it does not even then."""
        if self._end is not None or self.terminated:
            return
        self.terminated = True
        self.follow()
        if not self._lanes:
            self.fail(CancelledError(f"job {self._id} was terminated"))
            return
        start: Start | None = self._ask("order", self._id, False, otherwise=None)
        if start is None:
            self._cancel(force=False)
        if start is None and self._cancel_by is None:
            self.await_end(GRACE_S)
        if self._end is None:
            threading.Thread(target=self._insist, name="treadle-terminate", daemon=True).start()

    def follow(self, lane: str | None = None, ref: Any = None) -> None:
        """Be told of the end; with `ref`, take the outcome of that task for the job's as well."""
        with _changed:
            new = {} if self._followed else dict(self._lanes)
            self._followed = True
            if lane is not None and self._end is None:
                self._lanes[lane] = new[lane] = ref
        for each, its_ref in new.items():
            its_ref.future().add_done_callback(partial(self._arrived, each))

    def fail(self, error: BaseException) -> None:
        """End the job, which was not sent."""
        self._finish(error)

    def await_end(self, timeout: float | None) -> None:
        """Block until it is known here that the job has ended."""
        with _changed:
            _changed.wait_for(lambda: self._end is not None, timeout)

    def _await(self, timeout: float | None) -> None:
        job = running_job()
        lends_by_waiting = isinstance(job, TaskJob) and job.lends_by_waiting
        deadline = None if timeout is None else time.monotonic() + timeout
        with nullcontext() if lends_by_waiting else parked():
            while self._end is None and (deadline is None or time.monotonic() < deadline or not timeout):
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not self._followed:
                    self._fetch(left)
                elif lends_by_waiting:
                    self._await_lanes(left)
                else:
                    self.await_end(left)
                if not timeout and deadline is not None:
                    return

    def _fetch(self, timeout: float | None) -> None:
        """Wait for the task in this thread, which costs much less than being told of its end."""
        lanes = tuple(self._lanes.items())
        if len(lanes) != 1:  # it has ended, or is followed by now
            return
        ((lane, ref),) = lanes
        try:
            outcome: Outcome = ray.get(ref, timeout=LOOK_S if timeout is None else min(timeout, LOOK_S))
        except ray.exceptions.GetTimeoutError:
            return
        except Exception as error:  # noqa: BLE001 - told in words of treadle by `_failed`
            self._failed(lane, error)
        else:
            self._settle(lane, outcome)

    def _await_lanes(self, timeout: float | None) -> None:
        """Wait for the tasks, so that Ray lends the processor of this one, until what came of it is here."""
        with _changed:
            refs = list(self._lanes.values())
        ready = ray.wait(refs, timeout=timeout)[0] if refs else []
        with _changed:
            _changed.wait_for(lambda: self._end is not None or self._heard_of(ready), timeout)

    def _heard_of(self, ready: list[Any]) -> bool:
        return not any(ref in ready for ref in self._lanes.values())

    def _arrived(self, lane: str, arrived: Future[Any]) -> None:
        """In a thread of Ray, which must go on."""
        error = arrived.exception()
        if error is None:
            self._settle(lane, arrived.result())
        else:
            threading.Thread(target=self._failed, args=(lane, error), daemon=True).start()

    def _settle(self, lane: str, outcome: Outcome) -> None:
        if outcome.packed is not None:
            self._finish(outcome)
        else:
            self._leave(lane)

    def _failed(self, lane: str, error: BaseException) -> None:
        if (is_cancelled(error) and len(self._lanes) > 1) or (
            lane and is_loss(error) and self._ask("claimed", self._id, otherwise=lane) not in (lane, "")
        ):
            self._leave(lane)
        elif is_cancelled(error) or (self.terminated and is_loss(error)):
            self._finish(CancelledError(f"job {self._id} was terminated"))
        else:
            self._finish(self._told(error))

    def _told(self, error: BaseException) -> BaseException:
        """The error in words of treadle; for a lost worker with the last lines of its log."""
        if not is_loss(error):
            return translated(f"job {self._id}", error, None, [])
        start: Start | None = self._ask("where", self._id, otherwise=None)
        if (found := last_words(self._id, start)) is not None:
            start = found.start
            if found.pieces:
                self._desk.board.report_output.remote(Lot(self._id, LAST_LOT, found.pieces, ()))
        tail = self._ask("tail", self._id, 20, 0, otherwise=[])
        return translated(f"job {self._id}", error, start, tail)

    def _leave(self, lane: str) -> None:
        with _changed:
            self._lanes.pop(lane, None)
            _changed.notify_all()

    def _finish(self, end: Outcome | BaseException) -> None:
        with _changed:
            if self._end is not None:
                return
            self._end = end
            callbacks, self._callbacks = self._callbacks, []
            others = list(self._lanes.values()) if len(self._lanes) > 1 else []
            self._lanes = {}
            _changed.notify_all()
        for callback in callbacks:
            herald.call(partial(callback, self))
        for ref in others:
            ray.cancel(ref)

    def _open(self) -> Any:
        if self._opened is None:
            self._opened = _opened(self._end)
        if isinstance(self._opened, BaseException):
            raise self._opened
        return self._opened[0]

    def _has_begun(self) -> bool:
        self._began = self._began or self._ask("where", self._id, otherwise=None) is not None
        return self._began

    def _ask(self, question: str, *args: Any, otherwise: Any) -> Any:
        """An answer of the board; a board that is lost knows nothing any more, which ends no job."""
        if not ray.is_initialized():  # a call of Ray would start a cluster
            return otherwise
        answer: Future[Any] = getattr(self._desk.board, question).remote(*args).future()
        try:
            return answer.result(ANSWER_S)
        except (ray.exceptions.RayError, TimeoutError):
            return otherwise

    def _cancel(self, *, force: bool) -> None:
        with _changed:
            refs = list(self._lanes.values())
        if not ray.is_initialized():
            return
        if self._cancel_by is not None:
            self._cancel_by(force)
            return
        for ref in refs:
            ray.cancel(ref, force=force)

    def _insist(self) -> None:
        self.await_end(GRACE_S)
        if self._end is None:
            self._ask("order", self._id, True, otherwise=None)
            self.await_end(GRACE_S)
        if self._end is None:
            self._cancel(force=True)

    def __del__(self) -> None:
        if self._end is None and not self._followed and ray.is_initialized():
            for ref in self._lanes.values():
                self._desk.adopt(ref.future())

    def __repr__(self) -> str:
        return f"<job {self._id}>"


def _opened(end: Outcome | BaseException | None) -> tuple[Any] | BaseException:
    if not isinstance(end, Outcome):
        return end or CancelledError()
    try:
        return (open_outcome(end.packed or b""),)
    except BaseException as error:  # noqa: BLE001 - raised each time that the result is asked for
        return error


def _nothing(_: object) -> None:
    pass
