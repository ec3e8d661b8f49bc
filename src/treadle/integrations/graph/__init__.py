"""Draws a graph of steps: as mermaid text, as an SVG, and as a page to walk around in."""

from treadle.integrations.graph.html import to_html
from treadle.integrations.graph.mermaid import to_mermaid
from treadle.integrations.graph.model import STATES, PlanGraph, PlanNode, State
from treadle.integrations.graph.svg import to_svg

__all__ = ["STATES", "PlanGraph", "PlanNode", "State", "to_html", "to_mermaid", "to_svg"]
