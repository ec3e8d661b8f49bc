"""Serves the metrics of a run to a Prometheus that asks for them."""

from __future__ import annotations

import socket
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from treadle.errors import RunError
from treadle.telemetry.events import Event, MetricsEndpoint, RunStarted
from treadle.telemetry.prometheus import Shown
from treadle.telemetry.prometheus_spec import PrometheusSpec
from treadle.telemetry.sinks import Sink

_POLL_SECONDS = 0.05
"""`shutdown` takes so long at most: the end of a run waits for it."""


class PullSink:
    """Serves the metrics at an address until it is closed; `url` is where, with the port that was free.

    Raises RunError when the address cannot be listened at.
    """

    def __init__(self, spec: PrometheusSpec, telling: Sink) -> None:
        self._shown = shown = Shown()
        self._telling = telling
        try:
            server = make_server(spec.host, spec.port, make_wsgi_app(shown.registry), _server(spec), _Quiet)
        except OSError as error:
            raise RunError(
                f"metrics.prometheus.address {spec.address}: cannot listen there: {error}"
            ) from error
        self._server = server
        self.url = f"http://{spec.address.rpartition(':')[0]}:{server.server_port}/metrics"
        # A daemon, so that a run which nobody closed does not keep the interpreter from ending.
        self._thread = threading.Thread(
            target=server.serve_forever, args=(_POLL_SECONDS,), name="treadle-metrics", daemon=True
        )
        self._thread.start()

    def emit(self, event: Event) -> None:
        """Show what the event says from now on; tell where when the run begins."""
        self._shown.take(event)
        if isinstance(event, RunStarted):
            self._telling.emit(MetricsEndpoint(self.url))

    def close(self) -> None:
        """Stop listening; harmless the second time."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


class _Quiet(WSGIRequestHandler):
    """Writes no line to standard error for each request."""

    timeout = 10  # seconds for the request of a client that says nothing

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Nothing."""


class _Server4(ThreadingWSGIServer):
    address_family = socket.AF_INET


class _Server6(ThreadingWSGIServer):
    address_family = socket.AF_INET6


def _server(spec: PrometheusSpec) -> type[ThreadingWSGIServer]:
    return _Server6 if ":" in spec.host else _Server4
