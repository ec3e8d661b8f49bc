"""Curves show the numbers they are given and stay inside their frame."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.integrations.report import GrowthPoint
from treadle.integrations.report.charts import area_path, growth_chart, line_path
from treadle.integrations.report.words import duration, excerpt, percent, short_count

values = st.lists(st.floats(0, 1), min_size=2, max_size=30)


def _numbers(path: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?[\d.]+", path)]


@given(values)
def test_a_smooth_line_never_leaves_the_range_of_its_points(ys: list[float]) -> None:
    """A curve that dips below zero between two decades would show a share that never was."""
    path = line_path([(float(x), 100 * y) for x, y in enumerate(ys)])
    drawn = _numbers(path)[1::2]
    assert min(drawn) >= 100 * min(ys) - 0.02
    assert max(drawn) <= 100 * max(ys) + 0.02


def test_a_hill_of_one_period_or_none_is_drawn() -> None:
    """A corpus of one decade is small, not wrong."""
    assert area_path([0.5], 1).startswith("M0.00 50.00")
    assert area_path([], 0) == ""
    assert "nan" not in area_path([0.0, 0.0], 0)


def test_growth_has_three_lines_whose_names_keep_apart() -> None:
    """The fit ends near the curve it fits; two names on one spot cannot be read."""
    chart = growth_chart(
        [GrowthPoint("1790", 1000, 400, 300), GrowthPoint("2000", 90_000, 9_000, 8_900)], (1, 0.8)
    )
    assert {line.name for line in chart.lines} == {"different words", "Heaps' law", "words used once"}
    labels = sorted(line.label for line in chart.lines)
    assert all(lower - upper >= 8 - 1e-9 for upper, lower in pairwise(labels))


@given(st.integers(0, 10**9))
def test_ticks_are_few_and_inside(tokens: int) -> None:
    """An axis with two marks or twenty cannot be read."""
    chart = growth_chart([GrowthPoint("a", tokens, 1 + tokens // 2, tokens // 3)], (1, 0.1))
    assert 2 <= len(chart.x_ticks) <= 7
    assert all(0 <= tick.at <= 100 + 1e-9 for tick in chart.x_ticks)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (duration(4.23), "4.2 s"),
        (duration(59.97), "60.0 s"),
        (duration(84), "1 min 24 s"),
        (percent(0.0784), "7.8 %"),
        (short_count(25_000), "25,000"),
        (short_count(1_500_000), "1.5 M"),
        (excerpt("one two,  three", 9), "one two\N{HORIZONTAL ELLIPSIS}"),
        (excerpt("x" * 50, 9), "x" * 9 + "\N{HORIZONTAL ELLIPSIS}"),
        (short_count(2_500), "2,500"),
        (excerpt("short\ntext", 30), "short text"),
    ],
)
def test_words(got: str, expected: str) -> None:
    """What a reader sees."""
    assert got.replace("\N{NO-BREAK SPACE}", " ") == expected
