"""Dashboards and alert rules, judged by Prometheus' own tool and by the metrics that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from treadle.telemetry.catalogue import CATALOGUE
from treadle.telemetry.codegen import ObservedRun, alert_rules, dashboard

RUN = ObservedRun(
    'odd "step"\\', "transform", mode="push", max_bad_fraction=0.01, max_bad_rows=100, checkpoint=True
)
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: make servers"
)


def expressions() -> list[str]:
    panels = json.loads(dashboard(RUN))["panels"]
    rules = json.loads(alert_rules(RUN))["groups"][0]["rules"]
    return [target["expr"] for panel in panels for target in panel["targets"]] + [
        each["expr"] for each in rules
    ]


def test_every_metric_that_is_looked_at_is_shown_by_runs() -> None:
    shown = {each.name for each in CATALOGUE}
    shown |= {
        f"{each.name}{end}" for each in CATALOGUE if each.kind == "histogram" for end in ("_bucket", "_sum")
    }
    used = {name for each in expressions() for name in re.findall(r"treadle_run_\w+", each)}
    assert len(used) > 12
    assert used <= shown


def test_a_dashboard_has_what_its_import_wants() -> None:
    board = json.loads(dashboard(RUN))
    assert board["schemaVersion"] >= 36
    assert [each["type"] for each in board["templating"]["list"]] == ["datasource"]
    panels = board["panels"]
    assert len({each["id"] for each in panels}) == len(panels)
    cells = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}
    assert len(cells) == len(panels)
    assert all(each["gridPos"]["x"] + each["gridPos"]["w"] <= 24 for each in panels)


def test_a_limit_of_the_manifest_is_drawn() -> None:
    with_limit = [
        each for each in json.loads(dashboard(RUN))["panels"] if "rejected" in each["title"].lower()
    ]
    steps = [each["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"] for each in with_limit]
    assert steps == [0.01, 100]


@pytest.mark.parametrize("run", [RUN, ObservedRun("plain", "reduce")])
@needs_promtool
def test_promtool_takes_the_rules(tmp_path: Path, run: ObservedRun) -> None:
    (tmp_path / "rules.yml").write_text(alert_rules(run))
    promtool("check", "rules", "rules.yml", folder=tmp_path)


@needs_promtool
def test_the_rules_fire_when_they_must_and_not_before(tmp_path: Path) -> None:
    """Prometheus evaluates the rules over series that we make up, minute by minute."""
    run = ObservedRun(
        "s", "transform", mode="push", max_bad_fraction=0.01, max_bad_rows=100, stalled_seconds=600
    )
    (tmp_path / "rules.yml").write_text(alert_rules(run))

    def series(name: str, values: str, **labels: str) -> dict[str, str]:
        chosen = ",".join(
            f'{key}="{value}"' for key, value in {"step": "s", "run_type": "t", **labels}.items()
        )
        return {"series": f"{name}{{{chosen}}}", "values": values}

    def alert(
        name: str, minute: int, *, fires: bool, severity: str = "warning", **labels: str
    ) -> dict[str, Any]:
        rules = json.loads(alert_rules(run))["groups"][0]["rules"]
        text = next(each["annotations"]["summary"] for each in rules if each["alert"] == name)
        found = {
            "exp_labels": {"step": "s", "severity": severity, **labels},
            "exp_annotations": {"summary": text},
        }
        return {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": [found] if fires else []}

    # Counts stand still after minute 5; the run ends, failed, at minute 25.
    tests = {
        "interval": "1m",
        "input_series": [
            series("treadle_run_last_progress_timestamp_seconds", "0 60 120 180 240 300x30"),
            series("treadle_run_sampled_timestamp_seconds", "0 60 120 180 240 300 360x30"),
            series("treadle_run_ended", "0x24 1x10", outcome="failed"),
            series("treadle_run_ended", "0x40", outcome="finished"),
            series("treadle_run_rows_total", "0 1000 2000 3000 4000 5000x30", outcome="in"),
            series("treadle_run_rows_total", "0 5 10 30 60 90x30", outcome="rejected"),
        ],
        "alert_rule_test": [
            alert("TreadleRunStalled", 14, fires=False),
            alert("TreadleRunStalled", 16, fires=True, run_type="t"),
            alert("TreadleRunStalled", 27, fires=False),
            alert("TreadleRunFailed", 20, fires=False),
            alert("TreadleRunFailed", 27, fires=True, severity="critical", run_type="t", outcome="failed"),
            alert("TreadleManyRejects", 2, fires=False),
            alert("TreadleManyRejects", 5, fires=True),
            alert("TreadleRejectsNearLimit", 4, fires=False),
            alert("TreadleRejectsNearLimit", 6, fires=True),
            alert("TreadleMetricsStale", 5, fires=False),
            alert("TreadleMetricsStale", 8, fires=True, run_type="t"),
        ],
    }
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [tests]}
    (tmp_path / "tests.yml").write_text(json.dumps(content))
    promtool("test", "rules", "tests.yml", folder=tmp_path)


def promtool(*arguments: str, folder: Path) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
