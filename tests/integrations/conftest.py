"""A small report, and copies of it with other parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from treadle.integrations.report import Example, Fact, GrowthPoint, Point, ReportData, StepRow, Topic

PERIODS = ("1790s", "1800s", "1810s")
WORDS = ("treaty", "gold", "schools", "land", "peace")


def _topic(number: int) -> Topic:
    word = WORDS[number % len(WORDS)]
    examples = (Example(f"Of {word} and more {word}.", "John Adams", 1798),)
    return Topic(
        number, f"Matters of {word} {number}", 30 - number, 0.1, (word, "other"), examples, (3, 0, number)
    )


def _points(topics: int) -> tuple[Point, ...]:
    return tuple(
        Point(
            topic + 0.1 * (row % 7),
            topic % 3 + 0.1 * (row % 5),
            topic,
            1790 + row,
            "John Adams",
            f"passage {row}",
        )
        for topic in range(topics)
        for row in range(20)
    )


def _step(name: str, seconds: float, *deps: str) -> StepRow:
    return StepRow(
        name, name.title(), "ran", seconds, deps, f"/store/{name}", "ab" * 8, "build-1", "2026-01-01 12:00"
    )


def small_report(topics: int = 5, **changes: Any) -> ReportData:
    data = ReportData(
        title="A small corpus",
        lead="Twenty passages and what they speak of.",
        facts=(Fact("documents", "3", "read"), Fact("total time", "3 s")),
        topics=tuple(_topic(number) for number in range(topics)),
        periods=PERIODS,
        period_totals=(30, 0, 40),
        points=_points(topics),
        growth=(GrowthPoint("1790", 900, 300, 200), GrowthPoint("1815", 2100, 520, 300)),
        heaps=(7.5, 0.55),
        steps=(_step("read", 1.0), _step("train", 2.0, "read"), _step("group", 0.0, "read", "train")),
        corpus_note="Public domain.",
        made="treadle 0.0, today",
        sources={"map": "group", "topics": "group", "names": "train", "over_time": "group", "growth": "read"},
    )
    return replace(data, **changes)


@pytest.fixture
def report_of() -> Callable[..., ReportData]:
    """Builds a report; keyword arguments replace its parts."""
    return small_report
