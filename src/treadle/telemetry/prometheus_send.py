"""Hands the metrics of a run over every few seconds: to a push gateway, or into a text file.

A gateway or a disk that fails does not fail the run: what went wrong is in `notes`, and told by an event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client import push_to_gateway, write_to_textfile

from treadle.errors import RunError
from treadle.telemetry.events import Event, MetricsFinalized, MetricsUnsent
from treadle.telemetry.prometheus import Shown
from treadle.telemetry.prometheus_spec import PrometheusSpec
from treadle.telemetry.sinks import Sink


def pushing(spec: PrometheusSpec, telling: Sink) -> SendingSink:
    """Sends the metrics to the gateway; they replace those of an earlier run of the job and the step."""
    url, shown = str(spec.url), Shown()

    def push() -> None:
        key = {"step": shown.started.step_id}
        push_to_gateway(url, spec.job, shown.registry, grouping_key=key, timeout=spec.timeout)

    target = f"push gateway {_without_user(url)}"
    return SendingSink(spec, shown, telling, push, target, "see that one listens at metrics.prometheus.url")


def writing(spec: PrometheusSpec, telling: Sink) -> SendingSink:
    """Replaces the file at once, so that nobody reads half of it. Raises RunError without its folder."""
    path, shown = Path(str(spec.path)), Shown()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"metrics.prometheus.path {path}: cannot make its folder: {error}") from error

    def write() -> None:
        write_to_textfile(str(path), shown.registry)

    advice = "see that this user may write at metrics.prometheus.path, and that there is room"
    return SendingSink(spec, shown, telling, write, str(path), advice)


class SendingSink:
    """Sends every `interval` seconds, from a thread of its own, and a last time when the metrics end.

    What cannot be sent to `target` is told with `advice`, what to do about it.
    """

    def __init__(
        self,
        spec: PrometheusSpec,
        shown: Shown,
        telling: Sink,
        send: Callable[[], None],
        target: str,
        advice: str,
    ) -> None:
        self._spec = spec
        self._shown = shown
        self._telling = telling
        self._send_now = send
        self._target = target
        self._advice = advice
        self._lock = threading.Lock()
        self._notes: list[str] = []
        self._told_all = False
        self._ending = threading.Event()
        # A daemon: a gateway that hangs must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._run, name="treadle-prometheus", daemon=True)
        self._thread.start()

    def emit(self, event: Event) -> None:
        """Keep what the event says; the end of the metrics is sent at once."""
        self._shown.take(event)
        if isinstance(event, MetricsFinalized):
            self._end()

    def notes(self) -> tuple[str, ...]:
        """What could not be sent, each reason once."""
        with self._lock:
            return tuple(self._notes)

    def close(self) -> None:
        """Send a last time, unless that was done; harmless the second time."""
        self._end()
        with self._lock:
            self._told_all = True  # the others are closed after this one

    def _end(self) -> None:
        if self._ending.is_set():
            return
        self._ending.set()
        wait = 2 * self._spec.timeout  # for one that is under way, and the last one
        self._thread.join(wait)
        if self._thread.is_alive():
            self._note(
                f"the last metrics were not sent to {self._target} within {wait:g} seconds; {self._advice}"
            )

    def _run(self) -> None:
        while not self._ending.wait(self._spec.interval):
            self._send()
        self._send()

    def _send(self) -> None:
        if self._shown.empty:
            return
        try:
            self._send_now()
        except (OSError, HTTPException, ValueError) as error:
            self._note(f"metrics were not sent to {self._target}: {error}; {self._advice}")

    def _note(self, reason: str) -> None:
        with self._lock:
            if self._told_all or reason in self._notes:
                return
            self._notes.append(reason)
            try:
                self._telling.emit(MetricsUnsent(reason))
            except RunError as error:  # there is nobody in this thread who could take it
                self._notes.append(str(error))


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
