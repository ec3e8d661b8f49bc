"""What is drawn: steps with their states, and which needs which."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from treadle.errors import ArgumentError, GraphError, UnknownNameError
from treadle.kernel.order import arrange

State: TypeAlias = Literal["run", "cached", "drifted", "running", "blocked", "failed", "done"]
STATES: Final[tuple[State, ...]] = get_args(State)

_LABEL: Final = 36
_TO_COME: Final = frozenset({"run", "drifted", "running", "blocked"})


@dataclass(frozen=True)
class PlanNode:
    """A step. `seconds` is what it took, or is expected to take where it is still to run.

    `label` tells it from others of its name.

    Raises:
        ArgumentError: seconds that are no length of time.
        UnknownNameError: no such state.
    """

    id: str
    name: str
    state: State | None = None
    seconds: float | None = None
    reason: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            raise UnknownNameError(f"state of step {self.id!r}", self.state, STATES)
        if self.seconds is not None and not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ArgumentError(f"step {self.id!r}: expected seconds of 0 or more, got {self.seconds!r}")

    @property
    def short_id(self) -> str:
        """Eight letters of the identity: what follows the name in the id, if the name leads it."""
        return self.id.removeprefix(f"{self.name}-")[:8]

    @property
    def second_line(self) -> str:
        """What stands below the name: the label, cut, else some of the identity."""
        if len(self.label) <= _LABEL:
            return self.label or self.short_id
        return f"{self.label[: _LABEL - 1]}…"

    @property
    def time(self) -> str:
        """The time for people, with `~` where it is an expectation; empty where it is not known."""
        if self.seconds is None:
            return ""
        return f"~{duration(self.seconds)}" if self.state in _TO_COME else duration(self.seconds)

    @property
    def told(self) -> str:
        """State and time, as far as they are known."""
        return " · ".join(filter(None, (self.state, self.time)))


@dataclass(frozen=True)
class PlanGraph:
    """Steps, and edges from the id of a step that is needed to that of one that needs it.

    `needs` has the edges the other way, as id -> ids, and `order` the ids, dependencies first.

    Raises:
        GraphError: an id that is there twice, an edge to nowhere, or a cycle.
    """

    nodes: Sequence[PlanNode]
    edges: Sequence[tuple[str, str]]
    needs: dict[str, list[str]] = field(init=False, repr=False, compare=False)
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "edges", tuple(dict.fromkeys(self.edges)))
        needs: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        if len(needs) < len(self.nodes):
            twice = Counter(node.id for node in self.nodes).most_common(1)[0][0]
            raise GraphError(f"step {twice!r} is there twice")
        for source, target in self.edges:
            if target not in needs:
                raise GraphError(
                    f"an edge leads from {source!r} to {target!r}, which is no step of the graph"
                )
            needs[target].append(source)
        object.__setattr__(self, "needs", needs)
        object.__setattr__(self, "order", arrange(needs))

    def counts(self) -> dict[State, int]:
        """How many steps are in each state that occurs, in the order of `STATES`."""
        found = Counter(node.state for node in self.nodes)
        return {state: found[state] for state in STATES if found[state]}


def duration(seconds: float) -> str:
    """A length of time for people: 0.3 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
