"""How Prometheus gets the metrics of a run."""

from __future__ import annotations

from treadle.manifest import Manifest
from treadle.processing.checks import setting_errors_at
from treadle.processing.compile import below
from treadle.telemetry import PrometheusSpec, check_prometheus


def prometheus_of(manifest: Manifest, root: str) -> PrometheusSpec | None:
    """What `metrics.prometheus` asks for; None when there is nothing to be told.

    A relative path of a text file counts from `root`.

    Raises:
        ManifestError: settings that do not go together.
        MissingExtraError: the client of Prometheus is not installed.
    """
    section = manifest.metrics.prometheus
    if section is None or not manifest.runtime.metrics_enabled:
        return None
    path = None if section.path is None else below(root, section.path)
    with setting_errors_at(manifest, "metrics.prometheus"):
        spec = PrometheusSpec(**{**section.model_dump(), "path": path})
    check_prometheus(spec)
    return spec
