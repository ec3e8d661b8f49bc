"""Tells of ends of jobs, in a thread of its own: a callback may take its time, and may call Ray."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

Call = Callable[[], object]


class Caller:
    """Makes calls in the order in which they came, in a daemon thread that is opened for the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._after_fork()
        os.register_at_fork(after_in_child=self._after_fork)

    def put(self, call: Call, *, delay: float = 0.0) -> None:
        """Make the call in `delay` seconds, and not before those that came earlier."""
        if self._thread is None:
            with self._opening:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
        self._calls.put((time.monotonic() + delay, call))

    def _after_fork(self) -> None:  # the child of a fork has no thread
        self._opening = threading.Lock()
        self._calls: SimpleQueue[tuple[float, Call]] = SimpleQueue()
        self._thread = None

    def _run(self) -> None:
        while True:
            due, call = self._calls.get()
            try:
                time.sleep(max(0.0, due - time.monotonic()))
                call()
            except Exception as error:  # noqa: BLE001 - one callback must not keep the others from being called
                threading.excepthook(threading.ExceptHookArgs((type(error), error, None, self._thread)))


callbacks = Caller("treadle-callbacks")
"""For those of users."""

reminders = Caller("treadle-reminders")
"""For what is to be done when a job has not ended in time; the delays are about the same."""
