"""`treadle manifest dashboard` and `alerts`: what Grafana and Prometheus need to watch a run."""

from __future__ import annotations

import sys
from pathlib import Path

from treadle.integrations.cli.params import Given, parse_params
from treadle.manifest import read_manifest
from treadle.processing.context import UNBOUND
from treadle.telemetry.codegen import ObservedRun, alert_rules
from treadle.telemetry.codegen import dashboard as dashboard_of


def dashboard(file: Path, /, *, param: Given = ()) -> None:
    """Print a Grafana dashboard, in JSON, for the runs of a manifest.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    param
        A parameter of the manifest, as NAME=VALUE; may be given several times.
    """
    sys.stdout.write(dashboard_of(_observed(file, param)))


def alerts(file: Path, /, *, param: Given = (), stalled_seconds: int = 600) -> None:
    """Print Prometheus alert rules, in YAML, for the runs of a manifest.

    Parameters
    ----------
    file
        The manifest, a YAML file.
    param
        A parameter of the manifest, as NAME=VALUE; may be given several times.
    stalled_seconds
        How long nothing may happen in a run before it counts as stalled.
    """
    sys.stdout.write(alert_rules(_observed(file, param, stalled_seconds)))


def _observed(file: Path, param: tuple[str, ...], stalled_seconds: int = 600) -> ObservedRun:
    manifest = read_manifest(file, parse_params(param), UNBOUND)
    prometheus = manifest.metrics.prometheus
    return ObservedRun(
        manifest.step_id,
        manifest.run.type,
        mode=prometheus.mode if prometheus else "pull",
        interval=prometheus.interval if prometheus else 5.0,
        max_bad_fraction=manifest.errors.max_bad_fraction,
        max_bad_rows=manifest.errors.max_bad_rows,
        checkpoint=manifest.checkpoint is not None,
        stalled_seconds=stalled_seconds,
    )
