"""A run in a thread of its own, watched by the thread that asked for it.

Ctrl-C strikes the main thread between any two instructions, also in the middle of handing over a
step. So the main thread does nothing there but pass events on to the reporter, and what drives the
steps is where no interrupt can tear it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeAlias, TypeVar

from treadle.execution.report import Event, Reporter
from treadle.fray import parked
from treadle.kernel import carry

T = TypeVar("T")
_Events: TypeAlias = "SimpleQueue[list[Event]]"
_NO_MORE: list[Event] = []


class Outbox:
    """Takes events from the thread that works; they reach the reporter when they are sent.

    Waking another thread costs more than most of what is done for a short step, so events go in lots.
    """

    def __init__(self, events: _Events) -> None:
        self._events = events
        self._lot: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Keep an event for the next lot."""
        self._lot.append(event)

    def send(self) -> None:
        """Nothing else is to be done for now: let the reporter have what there is."""
        if self._lot:
            self._events.put(self._lot)
            self._lot = []


def watch(work: Callable[[Outbox], T], halt: Callable[[], None], reporter: Reporter) -> T:
    """Call `work(outbox)` in another thread, and `reporter` in this one with each event sent.

    When something breaks in here, such as Ctrl-C or an error of the reporter, `halt` is called, the
    work is waited for, and the exception goes on. A second Ctrl-C does not wait.
    """
    events: _Events = SimpleQueue()
    outcome: Future[T] = Future()

    outbox = Outbox(events)

    def body() -> None:
        try:
            outcome.set_result(work(outbox))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that watches
            outcome.set_exception(error)
        finally:
            outbox.send()
            events.put(_NO_MORE)

    try:
        _start(carry(body), events)
        _pass_on(events, reporter)
    except BaseException as error:
        halt()
        _pass_on(events, _ignore if isinstance(error, Exception) else reporter)
        raise
    return outcome.result()


def _start(body: Callable[[], None], events: _Events) -> None:
    try:
        threading.Thread(target=body, name="treadle-run", daemon=True).start()
    except Exception:
        events.put(_NO_MORE)  # no thread is to be had: nothing will come
        raise


def _pass_on(events: _Events, reporter: Reporter) -> None:
    while (lot := _next(events)) is not _NO_MORE:
        for event in lot:
            reporter(event)


def _next(events: _Events) -> list[Event]:
    with parked():
        while True:
            # An interrupt that strikes just before the wait is seen only when the wait ends.
            with contextlib.suppress(Empty):
                return events.get(timeout=1)


def _ignore(event: Event) -> None:
    """The reporter has failed, and is not called again."""
