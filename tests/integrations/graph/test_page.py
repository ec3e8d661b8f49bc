"""The page in a real browser: it makes no request and no error, and can be walked with mouse and keys."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from treadle.integrations.graph import PlanGraph, to_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[[PlanGraph], Any]]:
    wrong: list[str] = []
    file = tmp_path / "graph.html"

    def opened(graph: PlanGraph) -> Any:
        file.write_text(to_html(graph, "A plan"), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda request: None if request.url == file.as_uri() else wrong.append(request.url)
        )
        page.goto(file.as_uri())
        return page

    yield opened
    assert wrong == []


def lit(page: Any, kind: str) -> int:
    return int(page.locator(f".tracing {kind}.lit").count())


def test_hover_lights_ancestors_and_descendants(
    open_page: Callable[[PlanGraph], Any], small: PlanGraph
) -> None:
    page = open_page(small)
    page.locator(".step").nth(1).hover()
    assert (lit(page, ".step"), lit(page, ".edge")) == (3, 2)
    page.mouse.move(5, 690)
    assert lit(page, ".step") == 0


def test_a_click_shows_the_details(open_page: Callable[[PlanGraph], Any], small: PlanGraph) -> None:
    page = open_page(small)
    page.locator(".step").nth(1).click()
    told = page.locator("#details").inner_text()
    assert all(part in told for part in (small.nodes[1].id, "drifted", "10 min 10 s", "why a<b>", "report"))
    page.locator("#details button", has_text="report").click()
    assert page.locator("#details h2").inner_text() == "report"
    page.keyboard.press("Escape")
    assert not page.locator("#details").is_visible()


def test_keys_walk_along_the_edges(open_page: Callable[[PlanGraph], Any], small: PlanGraph) -> None:
    page = open_page(small)
    page.locator(".step").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator("#details h2").inner_text() == "report"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.locator("#details h2").inner_text() in (small.nodes[0].name, small.nodes[1].name)


def test_dragging_and_the_wheel_move_the_view(
    open_page: Callable[[PlanGraph], Any], make_graph: Callable[[int], PlanGraph]
) -> None:
    page = open_page(make_graph(200))
    view = page.locator("#view")
    before = view.get_attribute("transform")
    page.mouse.move(500, 400)
    page.mouse.down()
    page.mouse.move(560, 420, steps=3)
    page.mouse.up()
    moved = view.get_attribute("transform")
    page.mouse.wheel(0, -300)
    page.wait_for_function("t => document.getElementById('view').getAttribute('transform') !== t", arg=moved)
    assert len({before, moved, view.get_attribute("transform")}) == 3


def test_the_search_lights_what_it_finds(
    open_page: Callable[[PlanGraph], Any], make_graph: Callable[[int], PlanGraph]
) -> None:
    page = open_page(make_graph(30))
    page.locator("#find").fill("step/7")
    assert lit(page, ".step") == 1
