"""What a run tells while it goes on. The runner never prints: it calls a reporter with events.

The reporter is called in the thread that asked for the run, with one event at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from treadle.kernel import Outcome

_LOG = logging.getLogger("treadle")


@dataclass(frozen=True)
class RunPlanned:
    """The steps in question were looked at: `cached` of them are done, `to_run` are not."""

    cached: int
    to_run: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.cached + self.to_run


@dataclass(frozen=True)
class CodeChanged:
    """A done step is served, though its function says something else than when it was built."""

    id: str
    name: str


@dataclass(frozen=True)
class StepStarted:
    """A step was handed over to be run."""

    id: str
    name: str


@dataclass(frozen=True)
class StepEnded:
    """A step came to its end; `seconds` are those of this run, so 0 when it was cached or skipped."""

    id: str
    name: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class RunStopping:
    """Nothing new is started; the steps that still run, by name, were asked to stop and are waited for."""

    waiting_for: tuple[str, ...]


@dataclass(frozen=True)
class RunEnded:
    """The run is over; `outcomes` has each step that came to its end (step id -> outcome)."""

    outcomes: Mapping[str, Outcome]
    seconds: float


Event: TypeAlias = RunPlanned | CodeChanged | StepStarted | StepEnded | RunStopping | RunEnded
Reporter: TypeAlias = Callable[[Event], None]


def log_event(event: Event) -> None:
    """The reporter when there is no other: changed code is a warning, the rest is for debugging."""
    if isinstance(event, CodeChanged):
        _LOG.warning(
            "step %s: its code has changed since it was built, and the former result is served; "
            "to build it again: force=[%r]",
            event.id,
            event.name,
        )
    else:
        _LOG.debug("%s", event)
