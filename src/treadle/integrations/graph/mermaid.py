"""A graph as mermaid text, for README files, issues and notebooks."""

from __future__ import annotations

from typing import Final

from treadle.integrations.graph.model import PlanGraph, PlanNode, State

# Fill, border and letters, readable on a light and on a dark page.
_STYLES: Final[dict[State, str]] = {
    "run": "fill:#ddf4ff,stroke:#0969da,color:#0a3069",
    "cached": "fill:#f0f2f4,stroke:#57606a,color:#24292f",
    "drifted": "fill:#fff1c2,stroke:#9a6700,color:#4d2d00",
    "running": "fill:#f3e8ff,stroke:#8250df,color:#3e1f79",
    "blocked": "fill:#f6f8fa,stroke:#8c959f,color:#424a53,stroke-dasharray:4 3",
    "failed": "fill:#ffebe9,stroke:#cf222e,color:#82071e",
    "done": "fill:#dafbe1,stroke:#1a7f37,color:#044f1e",
}


def to_mermaid(graph: PlanGraph) -> str:
    """The text of a flowchart from left to right, the same for the same graph."""
    keys = {node.id: f"s{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += (f'    {keys[node.id]}["{_label(node)}"]{_class(node)}' for node in graph.nodes)
    lines += (f"    {keys[source]} --> {keys[target]}" for source, target in graph.edges)
    lines += (f"    classDef {state} {_STYLES[state]}" for state in graph.counts())
    return "\n".join(lines) + "\n"


def _label(node: PlanNode) -> str:
    below = " · ".join(filter(None, (node.second_line, node.told)))
    return "<br/>".join(map(_escaped, filter(None, (node.name, below))))


def _class(node: PlanNode) -> str:
    return f":::{node.state}" if node.state else ""


def _escaped(text: str) -> str:
    """Letters, digits and a few signs as they are; all else as the number of its character."""
    return "".join(each if each.isalnum() or each in " ._-/~·" else f"#{ord(each)};" for each in text)
