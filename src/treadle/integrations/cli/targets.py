"""The graph of a target, for commands that explain or draw it."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.errors import UnknownNameError
from treadle.execution import VersionsUnused
from treadle.execution.freshness import OnDrift, Plan, look
from treadle.execution.graph import StepGraph, gather
from treadle.execution.labels import labels
from treadle.experiment.run import lowered
from treadle.integrations.cli.lookup import ambiguous
from treadle.integrations.cli.options import Lowering, load, tell_unused
from treadle.integrations.progress.state import called


@dataclass(frozen=True)
class Looked:
    """A graph of steps, and which of them are done."""

    graph: StepGraph
    plan: Plan

    def find(self, step: str) -> str:
        """The id of a step by its id, its name, or how its id begins.

        Raises:
            UnknownNameError: no step is called so.
            ArgumentError: several are.
        """
        steps = self.graph.steps
        if step in steps:
            return step
        named = [key for key in self.graph.order if steps[key].name == step]
        found = named or [key for key in self.graph.order if key.startswith(step)]
        if not found:
            raise UnknownNameError("step", step, {each.name for each in steps.values()})
        if len(found) > 1:
            told = labels({key: steps[key] for key in found})
            raise ambiguous(step, [called(key, told.get(key, "")) for key in found])
        return found[0]


def gathered(target: str, options: Lowering) -> StepGraph:
    """The steps of the target and all that they need."""
    versions = options.versions
    graph = gather(lowered(load(target, options.store), options.store, versions))
    if versions is not None and versions.unused:
        tell_unused(VersionsUnused(versions.unused))
    return graph


def looked_at(target: str, options: Lowering, on_drift: OnDrift | None = None) -> Looked:
    """The graph of the target, and which steps are done in the store."""
    graph = gathered(target, options)
    return Looked(graph, look(graph, frozenset(), on_drift or "warn"))
