"""Draws a graph of steps: as mermaid text, as an SVG, and as a page to walk around in.

The names are loaded when they are asked for: what prints a table has no graph to draw.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.integrations.graph.html import to_html
    from treadle.integrations.graph.mermaid import to_mermaid
    from treadle.integrations.graph.model import STATES, PlanGraph, PlanNode, State
    from treadle.integrations.graph.svg import to_svg

__all__ = ["STATES", "PlanGraph", "PlanNode", "State", "to_html", "to_mermaid", "to_svg"]

_MODULES = {
    "html": ("to_html",),
    "mermaid": ("to_mermaid",),
    "model": ("STATES", "PlanGraph", "PlanNode", "State"),
    "svg": ("to_svg",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
