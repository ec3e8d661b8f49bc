"""What Grafana and Prometheus need to watch the runs of a manifest, made from it."""

from treadle.telemetry.codegen.alerts import alert_rules
from treadle.telemetry.codegen.dashboard import dashboard
from treadle.telemetry.codegen.observed import ObservedRun

__all__ = ["ObservedRun", "alert_rules", "dashboard"]
