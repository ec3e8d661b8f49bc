"""Colours must be legible, and differ between neighbours for everybody."""

import math
import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.integrations.report import colours
from treadle.integrations.report.colours import DARK, LIGHT, assign_colours, contrast, difference

CSS = (Path(colours.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
SCHEMES = [pytest.param(0, LIGHT, id="light"), pytest.param(1, DARK, id="dark")]
places = st.tuples(st.floats(0, 1), st.floats(0, 1))


def _variable(name: str, scheme: int) -> str:
    values = re.findall(rf"--{name}: (#[0-9a-f]+)", CSS)
    value = values[scheme if len(values) > 1 else 0]
    return value if len(value) == 7 else "#" + "".join(2 * each for each in value[1:])


def _mix(colour: str, other: str, share: float) -> str:
    pairs = ((int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


@pytest.mark.parametrize(("scheme", "palette"), SCHEMES)
def test_dots_and_words_stand_out_from_the_page(scheme: int, palette: tuple[str, ...]) -> None:
    """WCAG AA: 3:1 for graphics, 4.5:1 for words; words in a topic's colour are mixed with ink as the CSS
    says."""
    page, ink = _variable("page", scheme), _variable("ink", scheme)
    shares = [
        int(each) / 100 for each in re.findall(r"color-mix\(in srgb, var\(--c\) (\d+)%, var\(--ink\)\)", CSS)
    ]
    assert shares
    for colour in palette:
        assert contrast(colour, page) >= 3
        assert all(contrast(_mix(colour, ink, share), page) >= 4.5 for share in shares)


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize("name", ["ink", "soft", "link", "ran", "cached", "failed", "skipped"])
def test_words_stand_out_from_page_and_boxes(name: str, scheme: int) -> None:
    """WCAG AA for every colour that words have."""
    for ground in ("page", "wash"):
        assert contrast(_variable(name, scheme), _variable(ground, scheme)) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_any_two_colours_differ_for_colour_blind_readers(palette: tuple[str, ...]) -> None:
    """0.02 is about the smallest difference one sees side by side; dots need several times that."""
    assert min(difference(a, b) for a, b in combinations(palette, 2)) > 0.1


def test_contrast_of_black_and_white_is_that_of_the_standard() -> None:
    """The ends of the scale of WCAG."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


@given(st.dictionaries(st.integers(0, 99), places, max_size=30))
def test_colours_are_shared_evenly(topics: dict[int, tuple[float, float]]) -> None:
    """As long as there are unused colours, no two topics look the same."""
    chosen = assign_colours(topics)
    assert chosen.keys() == topics.keys()
    uses = [list(chosen.values()).count(colour) for colour in range(len(LIGHT))]
    assert max(uses) - min(uses) <= 1


def test_equal_colours_lie_far_apart() -> None:
    """Twenty topics share ten colours; neighbours on the map must not be the pair that shares one."""
    grid = {row * 5 + column: (column / 4, row / 3) for row in range(4) for column in range(5)}
    chosen = assign_colours(grid)
    same = [math.dist(grid[a], grid[b]) for a, b in combinations(grid, 2) if chosen[a] == chosen[b]]
    assert min(same) > 0.4
