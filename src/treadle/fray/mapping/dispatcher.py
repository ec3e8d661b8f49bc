"""Hands batches out to the client and takes them back, in whatever thread a batch ends.

The lanes do not wait for the consumer: the callback of a batch hands out the next one. One thread hands out
at a time; another one that comes meanwhile leaves its lane to that one, so a client that calls back at once
makes no recursion.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from reprlib import repr as short
from typing import Any

from treadle.errors import PoisonedUnitError, ResultTooLargeError, WorkerLostError
from treadle.fray.mapping.batch import Batch, Outcome
from treadle.fray.mapping.packing import Packing, UnitNotSendable
from treadle.fray.mapping.scheduler import Scheduler
from treadle.fray.protocol import Client, JobHandle, JobRequest
from treadle.fray.running_job import parked
from treadle.kernel import add_note


@dataclass(frozen=True)
class Arrival:
    """For the consumer: the outcome of some units, or the error of the first; `ends`: of the whole map.

    `shown` says what the units that failed were, by their places.
    """

    numbers: Sequence[int]
    outcome: Outcome | None = None
    error: BaseException | None = None
    ends: bool = False
    shown: Mapping[int, str] = field(default_factory=dict)


class Dispatcher:
    """Of one map. `request` is the job of a batch, but for its function; `label` names a unit."""

    def __init__(
        self,
        client: Client,
        request: JobRequest[Any],
        scheduler: Scheduler,
        packing: Packing,
        label: Callable[[Any], str] | None,
    ) -> None:
        self._client = client
        self._request = request
        self._scheduler = scheduler
        self._packing = packing
        self._label = label or short
        self._noted = label is None
        self._context = copy_context()  # batches are submitted under it from any thread
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._handing_out = threading.Lock()
        self._asked = threading.Event()
        self._running: dict[int, JobHandle[Outcome]] = {}
        self._served: set[int] = set()  # lanes whose workers were sent the function
        self._arrived: deque[Arrival] = deque()
        self._open = True

    def ask(self, question: Callable[[Scheduler], Any]) -> Any:
        """What `question` gives, while nobody else asks or changes anything."""
        with self._lock:
            return question(self._scheduler)

    def hand_out(self) -> None:
        """Give every free lane a batch, as far as there are units that may start."""
        self._asked.set()  # before the lock is tried: whoever has it looks here after giving it back
        while self._asked.is_set() and self._open and self._handing_out.acquire(blocking=False):
            self._asked.clear()
            try:
                while (batch := self._next_batch()) is not None:
                    self._submit(batch)
            finally:
                self._handing_out.release()

    def arrivals(self) -> list[Arrival]:
        """What has come since the last call."""
        with self._lock:
            found = list(self._arrived)
            self._arrived.clear()
        return found

    def wait(self, timeout: float | None) -> None:
        """Until something has come, or `timeout` seconds; the place of the caller is given to others."""
        if self._arrived:
            return
        with parked(), self._news:
            if not self._arrived:
                self._news.wait(timeout)

    def close(self) -> None:
        """Hand out nothing more, and terminate what runs. No lock is taken: garbage is collected anywhere."""
        self._open = False
        for handle in tuple(self._running.values()):
            handle.terminate()

    def _next_batch(self) -> Batch | None:
        batch: Batch | None = self.ask(Scheduler.take) if self._open else None
        return batch

    def _submit(self, batch: Batch) -> None:
        try:
            request = replace(self._request, fn=self._packing.pack(self._with_function(batch)))
            handle = self._context.copy().run(self._client.submit, request)
        except UnitNotSendable as refusal:
            place, error = refusal.place, refusal.error
            self._settle(
                Arrival(batch.units.numbers[place:], error=error),
                lambda scheduler: scheduler.refused(batch, place),
            )
        except Exception as fault:  # noqa: BLE001 - raised in the consumer, in its place
            self._end_map(batch, fault)
        else:
            self._running[batch.lane] = handle
            if not self._open:  # closed meanwhile, and this one was not seen
                handle.terminate()
            handle.add_done_callback(lambda ended: self._ended(batch, ended))

    def _with_function(self, batch: Batch) -> Batch:
        first = batch.lane not in self._served
        self._served.add(batch.lane)
        return replace(batch, with_function=first)

    def _ended(self, batch: Batch, handle: JobHandle[Outcome]) -> None:
        if self._running.get(batch.lane) is handle:
            del self._running[batch.lane]
        if not self._open:
            return
        try:
            self._take_back(batch, handle)
        except BaseException as error:  # noqa: BLE001 - a fault of treadle: nobody else would be told of it
            first = batch.units.numbers[0]
            arrival = Arrival(batch.units.numbers, error=error, ends=True)
            self._settle(arrival, lambda scheduler: scheduler.stop_at(first))
        self.hand_out()

    def _take_back(self, batch: Batch, handle: JobHandle[Outcome]) -> None:
        try:
            outcome = handle.result()
        except WorkerLostError as error:
            self._lost(batch, error)
        except ResultTooLargeError as error:
            self._too_large(batch, error)
        except BaseException as error:  # noqa: BLE001 - raised in the consumer, in its place
            self._end_map(batch, error)
        else:
            self._came_back(batch, outcome)

    def _came_back(self, batch: Batch, outcome: Outcome) -> None:
        if outcome.function_missing:
            self._served.discard(batch.lane)  # the next batch of the lane brings the function along
            self._settle(None, lambda scheduler: scheduler.not_run(batch))
        else:
            failed = outcome.failed if self._noted else ()
            shown = {place: self._label(batch.units.values[place]) for place in failed}
            arrival = Arrival(batch.units.numbers, outcome, shown=shown)
            self._settle(arrival, lambda scheduler: scheduler.came_back(batch, outcome))

    def _lost(self, batch: Batch, error: WorkerLostError) -> None:
        poisoned = self._poisoned(batch, error)
        with self._news:
            if self._scheduler.lose(batch):
                self._arrived.append(Arrival(batch.units.numbers, error=poisoned))
            self._news.notify_all()

    def _poisoned(self, batch: Batch, error: WorkerLostError) -> PoisonedUnitError:
        how = str(error).partition(";")[0]  # what follows is advice for single jobs
        shown = self._label(batch.units.values[0])
        poisoned = PoisonedUnitError(batch.units.numbers[0], shown, self._scheduler.kills, how)
        poisoned.__cause__ = error
        for note in getattr(error, "__notes__", ()):
            add_note(poisoned, note)
        return poisoned

    def _too_large(self, batch: Batch, error: ResultTooLargeError) -> None:
        if len(batch.units) > 1:
            self._settle(None, lambda scheduler: scheduler.split(batch))
        else:
            shown = {0: self._label(batch.units.values[0])}
            arrival = Arrival(batch.units.numbers, error=error, shown=shown)
            self._settle(arrival, lambda scheduler: scheduler.refused(batch, 0))

    def _end_map(self, batch: Batch, error: BaseException) -> None:
        if isinstance(error, CancelledError):
            add_note(error, f"{self._request.name}: a job of it was terminated")
        arrival = Arrival(batch.units.numbers, error=error, ends=True)
        self._settle(arrival, lambda scheduler: scheduler.abort(batch))

    def _settle(self, arrival: Arrival | None, change: Callable[[Scheduler], None]) -> None:
        with self._news:
            change(self._scheduler)
            if arrival is not None:
                self._arrived.append(arrival)
            self._news.notify_all()
