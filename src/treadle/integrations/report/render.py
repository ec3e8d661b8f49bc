"""Renders a report as one HTML file that needs nothing else: no network, no fonts, no libraries.

The templates, the style sheet and the script lie beside this file, one per part of the page; they are put
together here. Every text is escaped by jinja2; the data for the script is JSON in which no `<` is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.errors import MissingExtraError
from treadle.integrations.report import words
from treadle.integrations.report.colours import DARK, LIGHT
from treadle.integrations.report.data import ReportData
from treadle.integrations.report.scatter import point_columns
from treadle.integrations.report.view import View, build_view
from treadle.storage.atomic import write_atomically

if TYPE_CHECKING:
    from jinja2 import Environment

MARKS = {"ran": "●", "cached": "○", "failed": "✕", "skipped": "\N{EN DASH}"}
"""Outcomes as shapes, for readers who cannot see their colours."""

TEMPLATES = Path(__file__).parent / "templates"


def render_report(data: ReportData) -> str:
    """The page as one HTML text, the same for the same data.

    Raises:
        MissingExtraError: jinja2 is not installed.
        GraphError: the steps name an unknown dependency or form a cycle.
    """
    view = build_view(data)
    template = _environment().get_template("report.html.j2")
    map_json = script_json(_map_data(view))
    return template.render(view=view, data=data, map_json=map_json, light=LIGHT, dark=DARK, marks=MARKS)


def write_report(data: ReportData, path: str | Path) -> None:
    """Render and write to `path`: the whole page or, after an error, what was there before."""
    write_atomically(str(path), render_report(data).encode())


def script_json(value: object) -> str:
    """JSON that may stand inside a script element: `</script>` and `<!--` cannot occur."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _map_data(view: View) -> dict[str, object]:
    topics = [{"name": each.topic.name, "colour": each.colour, "at": each.place} for each in view.topics]
    numbers = {each.topic.id: number for number, each in enumerate(view.topics)}
    palettes = {"light": LIGHT, "dark": DARK}
    return {**point_columns(view.data.points, numbers), "topics": topics, "palettes": palettes}


def _environment() -> Environment:
    try:
        import jinja2  # an optional library
    except ImportError as error:
        raise MissingExtraError("jinja2", "demo", "the report page") from error
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for form in (words.thousands, words.percent, words.duration, words.excerpt):
        environment.filters[form.__name__] = form
    environment.globals["asset"] = lambda name: (TEMPLATES / name).read_text(encoding="utf-8")
    return environment
