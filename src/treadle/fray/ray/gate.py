"""Lets so many jobs of a client into the cluster at once, where the cluster has room for more."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from treadle.fray.ray.job import RayJob

Send = Callable[[], Any]


class Gate:
    """`send()` hands a job to Ray and gives the reference of its task; jobs go in the order of `put`."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = threading.Lock()
        self._waiting: deque[tuple[RayJob[Any], Send]] = deque()

    def put(self, job: RayJob[Any], send: Send) -> None:
        """Hand the job over as soon as there is room."""
        with self._lock:
            self._waiting.append((job, send))
        self._let_through()

    def _let_through(self) -> None:
        while True:
            with self._lock:
                while self._waiting and self._waiting[0][0].end is not None:
                    self._waiting.popleft()
                if not self._free or not self._waiting:
                    return
                self._free -= 1
                job, send = self._waiting.popleft()
            try:
                ref = send()
            except Exception as error:  # noqa: BLE001 - it is the end of that job, and not of the others
                job.finish(error)
                self._ended(None)
            else:
                job.follow("", ref)
                ref.future().add_done_callback(self._ended)

    def _ended(self, _: object) -> None:
        with self._lock:
            self._free += 1
        self._let_through()
