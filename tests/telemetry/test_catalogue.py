import re
from pathlib import Path

import pytest

from treadle.telemetry.catalogue import CATALOGUE, COMMON_LABELS, Metric

PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"


def _row(metric: Metric) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"`{metric.name}`", metric.kind, labels, metric.unit, metric.help


def test_the_page_has_the_metrics_of_the_catalogue_in_their_order() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `treadle_")]
    shown = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    assert shown == [_row(metric) for metric in CATALOGUE]


def test_names_are_given_once() -> None:
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_a_name_keeps_the_conventions_of_prometheus(metric: Metric) -> None:
    assert re.fullmatch(r"treadle_run_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not set(metric.labels) & set(COMMON_LABELS)
    if metric.unit in ("seconds", "bytes", "seconds since 1970"):
        assert f"_{metric.unit.split()[0]}" in metric.name
