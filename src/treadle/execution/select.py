"""Which steps of a graph are meant: the selection language of the commands.

    train             the steps of this name, or the step of this id
    tok*              a pattern of names and ids: *, ? and [...]
    +train            also what it needs, near and far
    train+            also what depends on it, near and far
    failed, changed   the steps that the caller says are so; a step of that name wins
    a,b               both at once: the steps that are in each

Several expressions are united. Pure: nothing is read.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Self

from treadle.errors import ArgumentError, UnknownNameError
from treadle.execution.graph import StepGraph

_TERM = re.compile(r"(?P<above>\+?)(?P<name>[^+]+)(?P<below>\+?)")


def select(
    graph: StepGraph,
    expressions: Sequence[str],
    failed: Set[str] = frozenset(),
    changed: Set[str] = frozenset(),
) -> set[str]:
    """The ids of the steps that one of the expressions means; `failed` and `changed` are ids.

    The time is linear in the graph for each term. `failed` and `changed` may mean no step, and their
    ids that the graph does not have are left out.

    Raises:
        ArgumentError: an expression that is none.
        UnknownNameError: a name that no step has, or a pattern that fits none.
    """
    if isinstance(expressions, str):
        raise ArgumentError(f"select: expected several expressions, got one: put {expressions!r} into a list")
    terms = [[_Term.parse(each, expression) for each in expression.split(",")] for expression in expressions]
    names = _Names.of(graph, {"failed": failed, "changed": changed})
    chosen: set[str] = set()
    for together in terms:
        chosen |= set.intersection(*(term.select(graph, names) for term in together))
    return chosen


@dataclass(frozen=True)
class _Term:
    name: str
    above: bool
    below: bool

    @classmethod
    def parse(cls, text: str, whole: str) -> Self:
        match = _TERM.fullmatch(text.strip())
        if match is None:
            raise ArgumentError(
                f"select: {whole!r}: expected NAME, +NAME, NAME+ or +NAME+, or several parted by commas, "
                f"got {text!r}"
            )
        return cls(match["name"].strip(), bool(match["above"]), bool(match["below"]))

    def select(self, graph: StepGraph, names: _Names) -> set[str]:
        found = names.find(self.name)
        reached = set(found)
        if self.above:
            reached |= _reach(graph.deps, found)
        if self.below:
            reached |= _reach(graph.dependents, found)
        return reached


@dataclass(frozen=True)
class _Names:
    """Name or id -> the ids of the steps that have it. `sets` are the words that mean a set of ids."""

    known: Mapping[str, Set[str]]
    names: Set[str]
    sets: Mapping[str, Set[str]]

    @classmethod
    def of(cls, graph: StepGraph, sets: Mapping[str, Set[str]]) -> Self:
        known: dict[str, set[str]] = {}
        for key, step in graph.steps.items():
            known.setdefault(step.name, set()).add(key)
            known.setdefault(key, set()).add(key)
        names = {step.name for step in graph.steps.values()}
        return cls(known, names, {word: set(keys) & graph.steps.keys() for word, keys in sets.items()})

    def find(self, name: str) -> Set[str]:
        if name in self.known:
            return self.known[name]
        if name in self.sets:
            return self.sets[name]
        fits = re.compile(fnmatch.translate(name)).match
        found = [keys for known, keys in self.known.items() if fits(known)]
        if not found:
            raise UnknownNameError("step", name, self.names)
        return set().union(*found)


def _reach(edges: Mapping[str, Sequence[str]], keys: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    stack = list(keys)
    while stack:
        if (key := stack.pop()) not in reached:
            reached.add(key)
            stack.extend(edges[key])
    return reached
