"""The page says all that the data says, and nothing in the data can change the page."""

import builtins
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import MissingExtraError
from treadle.integrations.report import Example, Point, ReportData, render_report, write_report
from treadle.integrations.report.render import script_json

SHALOM = "\u05e9\u05dc\u05d5\u05dd"
HOSTILE = f"""</script><script>alert(1)</script><!-- "a" 'b' & \u2028 \U0001f600 {SHALOM} {{{{ 7*7 }}}}"""

MakeReport = Callable[..., ReportData]


class _Page(HTMLParser):
    """The tags, ids and inner links of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.urls: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [value for key, value in attrs if key == "id" and value]
        if (link := values.get("href") or "").startswith("#"):
            self.links.append(link[1:])
        self.urls += [value for key, value in attrs if key in {"src", "href"} and value and value[0] != "#"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_topic_and_every_source_is_on_the_page(report_of: MakeReport) -> None:
    """A topic that is left out, or a number without a source, would be a silent lie."""
    data = report_of()
    page = _Page(render_report(data))
    for topic in data.topics:
        assert topic.name in page.text
        assert topic.examples[0].text in page.text
    for step in data.steps:
        assert all(each in page.text for each in (step.name, step.output_path, step.fingerprint, step.build))
    assert page.text.count("\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}") == len(data.sources) + 1


def test_inner_links_lead_somewhere_and_ids_are_unique(report_of: MakeReport) -> None:
    """A source link that leads nowhere is worse than none."""
    page = _Page(render_report(report_of()))
    assert set(page.links) <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)


def test_the_page_needs_nothing_from_outside(report_of: MakeReport) -> None:
    """The file is mailed and kept for years; a font or script elsewhere would be gone by then."""
    html = render_report(report_of())
    assert _Page(html).urls == ["data:,"]
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|import\(", html)


def test_hostile_text_stays_text(report_of: MakeReport) -> None:
    """Passages and names come from anywhere, the names even from a language model."""
    calm = report_of()
    topic = replace(
        calm.topics[0], name=HOSTILE, terms=(HOSTILE,), examples=(Example(HOSTILE, HOSTILE, 1800),)
    )
    step = replace(calm.steps[0], name=HOSTILE, output_path=HOSTILE, fingerprint=HOSTILE, build=HOSTILE)
    wild = replace(
        calm,
        title=HOSTILE,
        lead=HOSTILE,
        corpus_note=HOSTILE,
        made=HOSTILE,
        topics=(topic, *calm.topics[1:]),
        steps=(step, *calm.steps[1:]),
        points=(Point(0, 0, 0, 1800, HOSTILE, HOSTILE), *calm.points[1:]),
    )
    before, after = _Page(render_report(calm)), _Page(render_report(wild))
    assert after.tags == before.tags
    assert after.ids == before.ids
    assert HOSTILE in after.text
    assert "49" not in after.text.split()


@given(st.text())
def test_json_in_a_script_survives_and_cannot_end_it(text: str) -> None:
    """Inside a script element an HTML parser looks for `</script` and `<!--`, nothing else is escaped."""
    embedded = script_json({"text": text})
    assert "<" not in embedded
    assert json.loads(embedded) == {"text": text}


def test_same_data_same_page(report_of: MakeReport) -> None:
    """A page that changes by itself could not be compared with an earlier one."""
    assert render_report(report_of()) == render_report(report_of())


def test_a_report_of_nothing_is_still_a_page(report_of: MakeReport) -> None:
    """The first run of somebody's own corpus may find nothing; an error in the template would hide why."""
    parts = ("facts", "topics", "periods", "period_totals", "points", "growth", "steps")
    nothing: dict[str, Any] = dict.fromkeys(parts, ())
    html = render_report(replace(report_of(), **nothing, sources={}))
    assert "A small corpus" in html


def test_outcomes_are_told_in_words(report_of: MakeReport) -> None:
    """Whoever cannot see the colour of a box must be able to read what became of the step."""
    read, train, group = report_of().steps
    steps = (
        replace(read, outcome="cached"),
        replace(train, outcome="failed"),
        replace(group, outcome="skipped"),
    )
    text = _Page(render_report(report_of(steps=steps))).text
    assert {"cached", "failed", "skipped"} <= set(text.split())


def test_write_report_leaves_the_former_page_when_rendering_fails(
    report_of: MakeReport, tmp_path: Path
) -> None:
    """A page that was good must not be lost to an attempt that failed."""
    path = tmp_path / "sub" / "report.html"
    write_report(report_of(), path)
    before = path.read_bytes()
    broken = report_of(steps=(replace(report_of().steps[0], deps=("nowhere",)),), sources={}, facts=())
    with pytest.raises(ValueError, match="nowhere"):
        write_report(broken, path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_without_jinja2_the_install_line_is_given(
    report_of: MakeReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jinja2 is an optional package."""
    real = builtins.__import__

    def absent(name: str, *rest: Any, **named: Any) -> Any:
        if name == "jinja2":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'treadle[demo]'")):
        render_report(report_of())
