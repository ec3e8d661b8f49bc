"""Alert rules for Prometheus, as YAML.

They are written as JSON, every text of which is YAML 1.2: https://yaml.org/spec/1.2.2/, section 1.2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from treadle.telemetry.catalogue import ENDED, SAMPLED
from treadle.telemetry.codegen.observed import ObservedRun

_STALE_INTERVALS = 6


def alert_rules(run: ObservedRun) -> str:
    """A file of rules, for `rule_files` of prometheus.yml: what should wake somebody about these runs."""
    group = {"name": f"treadle {run.step_id}", "rules": list(_rules(run))}
    return json.dumps({"groups": [group]}, indent=2, ensure_ascii=False) + "\n"


def _rules(run: ObservedRun) -> Iterator[dict[str, Any]]:
    resume = ", it goes on from its checkpoint" if run.checkpoint else ""
    yield _rule(
        run,
        "TreadleRunFailed",
        f"{run.series(ENDED, outcome='failed')} == 1",
        "critical",
        f"A run of {run.step_id} failed; see its log, and run it again{resume}.",
    )
    idle = f"time() - {run.series('treadle_run_last_progress_timestamp_seconds')} > {run.stalled_seconds}"
    yield _rule(
        run,
        "TreadleRunStalled",
        f"{idle} unless on (step) (sum by (step) ({run.series(ENDED)}) > 0)",
        "warning",
        f"A run of {run.step_id} has counted nothing for {run.stalled_seconds} s, and has not ended.",
    )
    yield from _too_many_rejects(run)
    if run.mode != "pull":
        late = _STALE_INTERVALS * run.interval
        yield _rule(
            run,
            "TreadleMetricsStale",
            f"time() - {run.series(SAMPLED)} > {late:g}"
            f" unless on (step) (sum by (step) ({run.series(ENDED)}) > 0)",
            "warning",
            f"The metrics of {run.step_id} are older than {late:g} s, and no run has ended: one was killed, "
            "or cannot send.",
        )


def _too_many_rejects(run: ObservedRun) -> Iterator[dict[str, Any]]:
    rejected = run.series("treadle_run_rows_total", outcome="rejected")
    taken = run.series("treadle_run_rows_total", outcome="in")
    part = f"sum by (step) ({rejected}) / sum by (step) ({taken} > 0)"
    if run.max_bad_fraction is not None:
        yield _rule(
            run,
            "TreadleManyRejects",
            f"{part} > {run.max_bad_fraction:g}",
            "warning",
            f"{run.step_id} rejects more than {run.max_bad_fraction:.15g} of its rows, and will fail for it.",
        )
    if run.max_bad_rows is not None:
        yield _rule(
            run,
            "TreadleRejectsNearLimit",
            f"sum by (step) ({rejected}) > {0.8 * run.max_bad_rows:.15g}",
            "warning",
            f"{run.step_id} has rejected more than 80 % of the {run.max_bad_rows} rows that it may.",
        )


def _rule(run: ObservedRun, name: str, expression: str, severity: str, text: str) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "labels": {"severity": severity, "step": run.step_id},
        "annotations": {"summary": text.replace("{{", "{ {")},
    }
