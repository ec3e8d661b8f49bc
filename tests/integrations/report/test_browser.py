"""The page in a real browser: no error, no request, no word over another, and the passage at hand can be
read."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from treadle.integrations.report import ReportData, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LONG = "A name such as language models sometimes give: long, winding, and without any end in sight"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]

MakeReport = Callable[..., ReportData]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def crowded(report_of: MakeReport) -> ReportData:
    """Twenty-four topics, many in one spot, some with long names."""
    data = report_of(topics=24)
    topics = tuple(replace(each, name=LONG if each.id % 5 == 0 else each.name) for each in data.topics)
    points = tuple(replace(each, x=each.x / 9 if each.topic % 2 else each.x) for each in data.points)
    return replace(data, topics=topics, points=points)


def _open(browser: Any, data: ReportData, folder: Path, width: int, **options: Any) -> tuple[Any, list[str]]:
    """The page, and what it did that it must not do."""
    file = folder / "report.html"
    write_report(data, file)
    page = browser.new_page(viewport={"width": width, "height": 900}, **options)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url == file.as_uri() else wrong.append(request.url))
    page.goto(file.as_uri())
    page.locator("#map-labels .label").first.wait_for(state="visible")
    return page, wrong


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_names_on_the_map_do_not_overlap_and_nothing_is_wider_than_the_page(
    browser: Any, crowded: ReportData, tmp_path: Path, width: int
) -> None:
    """A name over another is two names that cannot be read."""
    page, wrong = _open(browser, crowded, tmp_path, width)
    frame = page.locator("#map-frame").bounding_box()
    boxes = [label.bounding_box() for label in page.locator("#map-labels .label").all()]
    assert len(boxes) == 24
    for box in boxes:
        assert frame["x"] <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"]
        assert frame["y"] <= box["y"]
        assert box["y"] + box["height"] <= frame["y"] + frame["height"]
    assert not any(_touch(a, b) for a, b in combinations(boxes, 2))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []


def _touch(a: dict[str, float], b: dict[str, float]) -> bool:
    beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
    return not (beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pointing_at_a_dot_shows_its_passage(
    browser: Any, report_of: MakeReport, tmp_path: Path, scheme: str
) -> None:
    """The map is there to be read, not only to be looked at."""
    data = report_of(topics=2)
    page, wrong = _open(browser, data, tmp_path, 1280, color_scheme=scheme)
    page.locator("#map-canvas").scroll_into_view_if_needed()
    frame = page.locator("#map-canvas").bounding_box()
    page.mouse.move(frame["x"] + 38, frame["y"] + frame["height"] - 38)  # the corner where topic 0 starts
    card = page.locator("#map-card")
    assert card.is_visible()
    assert data.points[0].text in card.inner_text()
    assert "John Adams, 1790" in card.inner_text()
    page.mouse.move(0, 0)
    assert card.is_hidden()
    assert wrong == []


def test_keys_walk_through_the_passages_of_a_topic(
    browser: Any, report_of: MakeReport, tmp_path: Path
) -> None:
    """Whoever uses no pointer reads the same passages."""
    data = report_of(topics=3)
    page, wrong = _open(browser, data, tmp_path, 1280)
    label = page.locator("#map-labels .label").nth(1)
    label.focus()
    page.keyboard.press("Enter")
    assert label.get_attribute("aria-pressed") == "true"
    assert "20 of 60 passages" in page.locator("#map-status").inner_text()
    page.locator("#map-canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    told = page.locator("#map-card").inner_text()
    assert data.topics[1].name in told
    assert "1791" in told
    page.keyboard.press("Escape")
    assert page.locator("#map-card").is_hidden()
    assert label.get_attribute("aria-pressed") == "false"
    assert wrong == []


def test_the_page_prints(browser: Any, report_of: MakeReport, tmp_path: Path) -> None:
    """On paper the map has a fixed size, and the screen has its own back afterwards."""
    page, wrong = _open(browser, report_of(), tmp_path, 1280)
    before = page.locator("#map-frame").bounding_box()
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.locator("#map-frame").bounding_box() == before
    assert wrong == []
