"""A dashboard for Grafana, as the JSON that its import takes.

The data source is chosen when it is imported. See "Dashboard JSON model" in Grafana's documentation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from treadle.telemetry.codegen.observed import ObservedRun

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT = 12, 8


@dataclass(frozen=True)
class _Panel:
    """One picture. `targets` are pairs of PromQL and legend; `unit` is a name of Grafana's."""

    title: str
    kind: str
    unit: str
    targets: Sequence[tuple[str, str]]
    limit: float | None = None


def dashboard(run: ObservedRun) -> str:
    """The dashboard of one step: rows, rejects, throughput, stages, queues, units, memory, CPU."""
    content = {
        "uid": sha256(run.step_id.encode()).hexdigest()[:12],
        "title": f"treadle: {run.step_id}",
        "tags": ["treadle", run.run_type],
        "schemaVersion": 39,
        "editable": True,
        "refresh": f"{max(5, round(run.interval))}s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
            ]
        },
        "annotations": {"list": []},
        "panels": [_drawn(at, panel) for at, panel in enumerate(_panels(run))],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _panels(run: ObservedRun) -> list[_Panel]:
    rows = run.series("treadle_run_rows_total")
    rejected = run.series("treadle_run_rows_total", outcome="rejected")
    taken = run.series("treadle_run_rows_total", outcome="in")
    units = run.series("treadle_run_unit_seconds_bucket")
    return [
        _Panel("Progress", "gauge", "percentunit", [(run.series("treadle_run_progress_ratio"), "done")]),
        _Panel("Rows", "timeseries", "short", [(f"sum by (outcome) ({rows})", "{{outcome}}")]),
        _Panel(
            "Rows per second",
            "timeseries",
            "rowsps",
            [(f"sum by (outcome) (rate({rows}[1m]))", "{{outcome}}")],
        ),
        _Panel(
            "Part of the rows that is rejected",
            "timeseries",
            "percentunit",
            [(f"sum({rejected}) / sum({taken} > 0)", "rejected")],
            run.max_bad_fraction,
        ),
        _Panel(
            "Rejected rows by kind",
            "timeseries",
            "short",
            [(f"sum by (kind) ({run.series('treadle_run_rejects_total')})", "{{kind}}")],
            None if run.max_bad_rows is None else float(run.max_bad_rows),
        ),
        _Panel(
            "Busy stages",
            "timeseries",
            "percentunit",
            [(f"sum by (stage) (rate({run.series('treadle_run_stage_seconds_sum')}[1m]))", "{{stage}}")],
        ),
        _Panel(
            "Batches waiting before a stage",
            "timeseries",
            "short",
            [(run.series("treadle_run_queue_items"), "{{queue}}")],
        ),
        _Panel(
            "Seconds for a unit",
            "timeseries",
            "s",
            [
                (f"histogram_quantile({part}, sum by (le) (rate({units}[5m])))", f"{part:.0%}")
                for part in (0.5, 0.95)
            ],
        ),
        _Panel(
            "Units",
            "timeseries",
            "short",
            [
                (run.series("treadle_run_units_planned"), "planned"),
                (run.series("treadle_run_units_done_total"), "done"),
                (run.series("treadle_run_units_skipped_total"), "done before"),
            ],
        ),
        _Panel(
            "Bytes per second",
            "timeseries",
            "Bps",
            [
                (f"rate({run.series('treadle_run_read_bytes_total')}[1m])", "read"),
                (f"rate({run.series('treadle_run_written_bytes_total')}[1m])", "written"),
            ],
        ),
        _Panel(
            "Memory", "timeseries", "bytes", [(run.series("treadle_run_resident_memory_bytes"), "resident")]
        ),
        _Panel(
            "CPUs in use",
            "timeseries",
            "short",
            [(f"rate({run.series('treadle_run_cpu_seconds_total')}[1m])", "CPUs")],
        ),
    ]


def _drawn(at: int, panel: _Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.limit is not None:
        steps.append({"color": "red", "value": panel.limit})
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if panel.kind == "gauge":
        defaults["max"] = 1
    elif panel.limit is not None:
        defaults["custom"] = {"thresholdsStyle": {"mode": "line"}}
    return {
        "id": at + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": _SOURCE,
        "gridPos": {"x": at % 2 * _WIDTH, "y": at // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for number, (expression, legend) in enumerate(panel.targets)
        ],
    }
