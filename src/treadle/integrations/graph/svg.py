"""A graph as one SVG that needs nothing else; light and dark by the reader's own setting."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from treadle.integrations.graph.layout import BOX_HEIGHT, Box, Drawing, lay_out
from treadle.integrations.graph.model import PlanGraph, PlanNode

PAGE: Final = Path(__file__).parent / "page"
_MARGIN: Final = 28.0
_LEGEND: Final = 34.0
# What XML 1.0 has no way to write.
_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def to_svg(graph: PlanGraph, title: str = "Graph of steps") -> str:
    """The SVG text, valid XML, the same for the same graph."""
    drawing = lay_out(graph)
    width = max(drawing.width + 2 * _MARGIN, _legend_width(graph) + 2 * _MARGIN)
    height = drawing.height + 2 * _MARGIN + _LEGEND
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="treadle-graph" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{safe(title)}">'
    )
    lines = [
        head,
        f"<title>{safe(title)}</title>",
        f"<style>{asset('graph.css')}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        *_legend(graph),
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN + _LEGEND:.0f})">',
        *picture(graph, drawing),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def picture(graph: PlanGraph, drawing: Drawing) -> list[str]:
    """The edges and the boxes, without a frame. An edge has the numbers of its steps as data."""
    number = {node.id: place for place, node in enumerate(graph.nodes)}
    edges = [
        f'<path class="edge" data-from="{number[source]}" data-to="{number[target]}" d="{path}"/>'
        for (source, target), path in drawing.paths.items()
    ]
    boxes = [_box(node, drawing.boxes[node.id], number[node.id]) for node in graph.nodes]
    return [*edges, *boxes]


def _box(node: PlanNode, box: Box, number: int) -> str:
    state = node.state or "plain"
    tip = "\n".join(filter(None, (node.name, node.id, node.label, node.told, node.reason)))
    return (
        f'<g class="step {state}" data-step="{number}" transform="translate({box.x:.1f} {box.y:.1f})">'
        f"<title>{safe(tip)}</title>"
        f'<rect class="card" width="{box.width:.1f}" height="{BOX_HEIGHT:.0f}" rx="8"/>'
        f'<path class="mark" d="M8 .5H4A7 7 0 0 0 .5 8V38A7 7 0 0 0 4 45.5H8z"/>'
        f'<text class="name" x="18" y="19">{safe(_cut(node.name, box.width))}</text>'
        f'<text class="id" x="18" y="35.5">{safe(node.second_line)}</text>'
        f'<text class="told" x="{box.width - 11:.1f}" y="35.5">{safe(node.told)}</text></g>'
    )


def _cut(name: str, width: float) -> str:
    """The name as far as it fits; the end of a name tells steps apart, so the middle goes."""
    letters = int((width - 30) / 7.4)
    if len(name) <= letters:
        return name
    tail = letters // 2
    return f"{name[: letters - tail - 1]}…{name[-tail:]}"


def _legend(graph: PlanGraph) -> list[str]:
    parts, x = [], _MARGIN
    for state, count in graph.counts().items():
        label = f"{state} {count}"
        parts.append(
            f'<g class="key {state}" transform="translate({x:.1f} {_MARGIN - 4:.0f})">'
            f'<circle class="mark" cx="5" cy="5" r="5"/><text x="16" y="9.5">{label}</text></g>'
        )
        x += _key_width(label)
    return parts


def _legend_width(graph: PlanGraph) -> float:
    return sum(_key_width(f"{state} {count}") for state, count in graph.counts().items())


def _key_width(label: str) -> float:
    return 38 + 7.2 * len(label)


def safe(text: str) -> str:
    """The text as it may stand in XML, in an element or in an attribute."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


@cache
def asset(name: str) -> str:
    """A file that lies beside the templates of the page."""
    return (PAGE / name).read_text(encoding="utf-8").strip()
