"""A reporter that keeps what it is told."""

from __future__ import annotations

from typing import TypeVar

from treadle.execution.report import Event, StepEnded

E = TypeVar("E")


class EventLog:
    """The events of runs, in order, when it is the `reporter` of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """See `Reporter`."""
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one type, in order."""
        return [each for each in self.events if isinstance(each, kind)]

    def ends(self) -> dict[str, str]:
        """How each step ended last, by its id: "done", "cached", "failed" or "skipped"."""
        return {each.id: type(each.outcome).__name__.lower() for each in self.of(StepEnded)}

    def clear(self) -> None:
        """Forget them, before another run."""
        self.events.clear()
