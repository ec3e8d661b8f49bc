"""A graph as one page that needs nothing else: pan, zoom, follow what a step needs and what needs it."""

from __future__ import annotations

import json
from string import Template

from treadle.integrations.graph.layout import lay_out
from treadle.integrations.graph.model import PlanGraph
from treadle.integrations.graph.svg import asset, picture, safe


def to_html(graph: PlanGraph, title: str = "Graph of steps") -> str:
    """The page as one HTML text, the same for the same graph. It asks the network for nothing."""
    drawing = lay_out(graph)
    return Template(asset("page.html")).substitute(
        title=safe(title),
        summary=safe(_summary(graph)),
        legend="".join(
            f'<li class="{state}"><i></i>{state} <b>{count}</b></li>'
            for state, count in graph.counts().items()
        ),
        style=asset("graph.css") + "\n" + asset("page.css"),
        picture="\n".join(picture(graph, drawing)),
        data=_data(graph),
        width=f"{drawing.width:.0f}",
        height=f"{drawing.height:.0f}",
        script=asset("page.js"),
    )


def _summary(graph: PlanGraph) -> str:
    steps, edges = len(graph.nodes), len(graph.edges)
    return f"{steps} {'step' if steps == 1 else 'steps'}, {edges} {'edge' if edges == 1 else 'edges'}"


def _data(graph: PlanGraph) -> str:
    """JSON that may stand in a script element: no `<` is left in it."""
    number = {node.id: place for place, node in enumerate(graph.nodes)}
    steps = [
        {
            "id": node.id,
            "name": node.name,
            "label": node.label,
            "state": node.state,
            "time": node.time,
            "reason": node.reason,
            "needs": [number[dep] for dep in graph.needs[node.id]],
        }
        for node in graph.nodes
    ]
    return json.dumps(steps, separators=(",", ":")).replace("<", "\\u003c")
