"""The sinks of a run, opened together: that of the caller, and those that the manifest names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.extras import check_extra
from treadle.kernel.unwind import Unwind
from treadle.telemetry.events import Event
from treadle.telemetry.prometheus_spec import PrometheusSpec
from treadle.telemetry.sinks import LogSink, NullSink, Sink, fork
from treadle.telemetry.trace import TraceSink


def check_prometheus(spec: PrometheusSpec) -> None:
    """Raises MissingExtraError when the client of Prometheus is not installed."""
    check_extra("metrics", f"metrics.prometheus with mode {spec.mode}", "prometheus_client")


class OpenSinks:
    """The sinks of one run as one; the one that the caller gave stays open."""

    def __init__(self, given: Sink, own: tuple[Sink, ...]) -> None:
        self._own = own
        self._all = fork(given, *own)

    def emit(self, event: Event) -> None:
        """Give the event to each sink. Raises the first error of one, after all have got it."""
        self._all.emit(event)

    def notes(self) -> tuple[str, ...]:
        """What went wrong so far with telling about the run, in words."""
        return tuple(note for sink in self._own for note in getattr(sink, "notes", tuple)())

    def close(self) -> None:
        """Close the sinks that were opened here; harmless the second time."""
        with Unwind() as unwind:
            for sink in self._own:
                unwind.push(sink.close)


def open_sinks(
    *,
    given: Sink | None = None,
    log: str | None = None,
    trace: str | None = None,
    prometheus: PrometheusSpec | None = None,
) -> OpenSinks:
    """Open the sinks that are named: `log` and `trace` are paths of local files.

    Raises RunError when one cannot be opened; then none is open.
    """
    first: Sink = given if given is not None else NullSink()
    own: list[Sink] = []
    with Unwind() as unwind:
        for sink in _opened(first, own, log, trace, prometheus):
            unwind.push(sink.close)
            own.append(sink)
        unwind.release()
    return OpenSinks(first, tuple(own))


def _opened(
    given: Sink, before: Sequence[Sink], log: str | None, trace: str | None, prometheus: PrometheusSpec | None
) -> Iterator[Sink]:
    if log is not None:
        yield LogSink(log)
    if trace is not None:
        yield TraceSink(trace)
    if prometheus is not None:
        yield _for_prometheus(prometheus, fork(given, *before))


def _for_prometheus(spec: PrometheusSpec, telling: Sink) -> Sink:
    """The imports are here because the client of Prometheus is an extra."""
    if spec.mode == "pull":
        from treadle.telemetry.prometheus_pull import PullSink

        return PullSink(spec, telling)
    from treadle.telemetry.prometheus_send import pushing, writing

    return pushing(spec, telling) if spec.mode == "push" else writing(spec, telling)
