"""Records that contradict each other are refused with the place, before anything is drawn."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from treadle.errors import ArgumentError, UnknownNameError
from treadle.integrations.report import Fact, Point, ReportData

MakeReport = Callable[..., ReportData]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"period_totals": (1, 2)}, ArgumentError, "period_totals: expected 3 counts"),
        ({"points": (Point(0, 0, 77, 1800, "", ""),)}, UnknownNameError, "topic of point 0 '77'"),
        (
            {"points": (Point(math.nan, 0, 0, 1800, "", ""),)},
            ArgumentError,
            "points: row 0: expected finite",
        ),
        ({"heaps": (math.nan, 0.5)}, ArgumentError, "heaps: expected finite"),
        ({"sources": {"mapp": "read"}}, UnknownNameError, "did you mean 'map'"),
        ({"sources": {"map": "raed"}}, UnknownNameError, "did you mean 'read'"),
        ({"facts": (Fact("words", "7", "nowhere"),)}, UnknownNameError, "source of 'words'"),
    ],
)
def test_a_contradiction_is_named(
    report_of: MakeReport, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    """A page drawn from records that do not fit looks right and is wrong."""
    with pytest.raises(error, match=message):
        report_of(**changes)


def test_ids_have_to_differ(report_of: MakeReport) -> None:
    """Two topics or steps of one id would hide one another."""
    data = report_of()
    with pytest.raises(ArgumentError, match="topics: expected different ids"):
        replace(data, topics=data.topics + data.topics[:1])
    with pytest.raises(ArgumentError, match="steps: expected different ids"):
        replace(data, steps=data.steps + data.steps[:1])
