"""Tells of ends of jobs, in a thread of its own: a callback may take its time, and may call Ray."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

Act = Callable[[], object]


class Herald:
    """Makes calls, one after the other, in a daemon thread that is opened for the first one."""

    def __init__(self) -> None:
        self._opening = threading.Lock()
        self.after_fork()

    def after_fork(self) -> None:
        """In the child of a fork, which has no thread."""
        self._acts: SimpleQueue[Act] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, act: Act) -> None:
        """Make the call soon."""
        if self._thread is None:
            with self._opening:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="treadle-herald", daemon=True)
                    self._thread.start()
        self._acts.put(act)

    def _run(self) -> None:
        while True:
            try:
                self._acts.get()()
            except Exception as error:  # noqa: BLE001 - one callback must not keep the others from being called
                threading.excepthook(threading.ExceptHookArgs((type(error), error, None, self._thread)))


herald = Herald()
os.register_at_fork(after_in_child=herald.after_fork)
