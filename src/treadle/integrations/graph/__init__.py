"""Draws a graph of steps: as mermaid text, as an SVG, and as a page to walk around in.

The names are loaded when they are asked for: what prints a table has no graph to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.integrations.graph.html import to_html
    from treadle.integrations.graph.mermaid import to_mermaid
    from treadle.integrations.graph.model import STATES, PlanGraph, PlanNode
    from treadle.integrations.graph.svg import to_svg

__all__ = ["STATES", "PlanGraph", "PlanNode", "to_html", "to_mermaid", "to_svg"]

_MODULES = {
    "html": ("to_html",),
    "mermaid": ("to_mermaid",),
    "model": ("STATES", "PlanGraph", "PlanNode"),
    "svg": ("to_svg",),
}
__getattr__, __dir__ = later(__name__, _MODULES)
