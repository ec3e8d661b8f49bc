"""A thread that looks at what the process and its children use: memory and CPU time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psutil

from treadle.errors import ArgumentError
from treadle.telemetry.events import ResourcesSampled


class ResourceSampler:
    """Samples at `start`, every `interval` seconds, and at `stop`, and gives each sample to `on_sample`.

    Between samples it waits for an event, so `stop` returns at once. An error of `on_sample` ends the
    sampling and is raised by `stop`. Raises ArgumentError for an interval that is not above 0.
    """

    def __init__(self, interval: float, on_sample: Callable[[ResourcesSampled], None]) -> None:
        if not interval > 0:
            raise ArgumentError(f"interval: expected more than 0 seconds, got {interval}")
        self._interval = interval
        self._on_sample = on_sample
        self._process = psutil.Process()
        self._cpu_before = sum(map(_cpu_seconds, self._family()))
        self._error: Exception | None = None
        self._stopping = threading.Event()
        # A daemon, so that a run which was never finalised does not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name="treadle-sampler", daemon=True)
        self.peak_rss_bytes = 0
        self.cpu_seconds = 0.0

    def start(self) -> None:
        """Take the first sample and start the thread. Raises what `on_sample` raises; then nothing runs."""
        self._sample()
        self._thread.start()

    def stop(self) -> None:
        """End the thread and take the last sample; nothing the second time.

        Raises what ended the sampling early, or what `on_sample` raises.
        """
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self._sample()

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                self._sample()
            except Exception as error:  # noqa: BLE001 - kept, and raised by stop
                self._error = error
                return

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def _sample(self) -> None:
        family = self._family()
        rss = sum(map(_rss_bytes, family))
        # The time of a child that nobody waited for is lost to the system; the sum must not go back.
        self.cpu_seconds = max(self.cpu_seconds, sum(map(_cpu_seconds, family)) - self._cpu_before)
        self.peak_rss_bytes = max(self.peak_rss_bytes, rss)
        self._on_sample(ResourcesSampled(rss, self.cpu_seconds, len(family)))


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0  # a child that ended since it was listed uses nothing


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0  # its time is in its parent's sum of children by now
    # What ended children used is known to their parent only.
    ended_children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return float(times.user + times.system + ended_children)
