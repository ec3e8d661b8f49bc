"""A run in a thread of its own, watched by the thread that asked for it.

Ctrl-C strikes the main thread between any two instructions, also in the middle of handing over a
step. So the main thread does nothing there but pass events on to the reporter, and what drives the
steps is where no interrupt can tear it. The first Ctrl-C ends a run in good order, and so does SIGTERM,
which a cluster sends; the second strikes at once.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TypeAlias, TypeVar

from treadle.execution.report import Event, Reporter
from treadle.fray import parked
from treadle.kernel import carry
from treadle.termination import OnSigterm, Terminated

T = TypeVar("T")
_Events: TypeAlias = "SimpleQueue[list[Event] | BaseException | None]"
"""Lots of events; an exception is to be raised by who watches; None is the end."""


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
            events.put(None)

    delivery = _Delivery(events)
    with _signals_as_events(events):
        try:
            _start(carry(body), events)
            delivery.run(reporter)
        except BaseException as error:
            halt()
            delivery.run(_ignore if isinstance(error, Exception) else reporter)
            raise
    return outcome.result()


@contextlib.contextmanager
def _signals_as_events(events: _Events) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM waits its turn: it tears no event from the hands of the reporter."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {each: signal.getsignal(each) for each in _MEANS}
    ours = [each for each, handler in usual.items() if _is_usual(handler)]

    def wait_your_turn(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what a handler gets
        for each in ours:
            signal.signal(each, usual[each])
        events.put(_MEANS[number]())

    for each in ours:
        signal.signal(each, wait_your_turn)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, usual[each])


def _is_usual(handler: object) -> bool:
    return handler in (signal.default_int_handler, signal.SIG_DFL) or isinstance(handler, OnSigterm)


_MEANS: dict[int, Callable[[], BaseException]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}


class _Delivery:
    """Hands events to a reporter, each once, also when it has to begin again with another reporter."""

    def __init__(self, events: _Events) -> None:
        self._events = events
        self._lot: deque[Event] = deque()

    def run(self, reporter: Reporter) -> None:
        while True:
            while self._lot:
                reporter(self._lot.popleft())
            lot = _next(self._events)
            if lot is None:
                return
            if isinstance(lot, BaseException):
                raise lot
            self._lot.extend(lot)


def _start(body: Callable[[], None], events: _Events) -> None:
    try:
        threading.Thread(target=body, name="treadle-run", daemon=True).start()
    except Exception:
        events.put(None)  # no thread is to be had: nothing will come
        raise


def _next(events: _Events) -> list[Event] | BaseException | None:
    with parked():
        while True:
            # An interrupt that strikes just before the wait is seen only when the wait ends.
            with contextlib.suppress(Empty):
                return events.get(timeout=1)


def _ignore(event: Event) -> None:
    """The reporter has failed, and is not called again."""
