"""What a run tells while it goes on. The runner never prints: it calls a reporter with events.

The reporter is called in the thread that asked for the run, with one event at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from treadle.execution.labels import labels
from treadle.execution.step_spec import StepSpec
from treadle.kernel import Outcome
from treadle.storage.ledger import Owner

_LOG = logging.getLogger("treadle")


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """Steps were looked at: `cached` of them are done, `to_run` are not.

    A run over a stream plans one part of it after the other. `expected` are the seconds that each step
    to run took when it, or another of its name, was built before (step id -> seconds); `critical_path` is the
    longest chain of steps to run, by those seconds. `steps` are all steps of the graph (step id -> spec). So
    many as `at_once` run at the same time, at most.
    """

    cached: int
    to_run: int
    expected: Mapping[str, float] = field(default_factory=dict)
    critical_path: tuple[str, ...] = ()
    steps: Mapping[str, StepSpec] = field(default_factory=dict, repr=False)
    at_once: int | None = None

    @property
    def total(self) -> int:
        """All of them."""
        return self.cached + self.to_run

    @property
    def labels(self) -> Mapping[str, str]:
        """What tells steps of one name apart; worked out when it is asked for, for that takes its time."""
        return labels(self.steps)


@dataclass(frozen=True, slots=True)
class VersionsUnused:
    """Versions were given for these names or patterns, and no step has such a name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepDrifted:
    """A done step is served, though `what` about it has changed since it was built."""

    id: str
    name: str
    what: str


class StepStarted(NamedTuple):
    """A step was handed over to be run, for the time number `attempt`."""

    id: str
    name: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class StepWaiting:
    """Another runner has the step: this one waits, holding no slot, until that is done or given up."""

    id: str
    name: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class StepRetrying:
    """An attempt failed, and the next one, number `attempt`, is made after `delay` seconds.

    One that was lost by no fault of the step is made again under its number; it was the loss number `loss` of
    the `losses` that the step may have.
    """

    id: str
    name: str
    attempt: int
    delay: float
    error: BaseException
    loss: int = 0
    losses: int = 0

    @property
    def told(self) -> str:
        """What has failed, in words."""
        return (
            f"lost, {self.loss} of {self.losses} times" if self.loss else f"attempt {self.attempt - 1} failed"
        )

    @property
    def next(self) -> str:
        """What follows, in words."""
        return "again" if self.loss else f"attempt {self.attempt}"


class StepEnded(NamedTuple):
    """A step came to its end; `seconds` are those of this run, so 0 when it was cached or skipped.

    A failed one was `cancelled` when it was asked to stop, and did.
    """

    id: str
    name: str
    outcome: Outcome
    seconds: float
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class RunStopping:
    """Nothing new is started; the steps that still run, by name, were asked to stop and are waited for."""

    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over; `counts` says how many steps ended how (type of outcome -> number).

    `cancelled` of the failed ones were asked to stop, and did.
    """

    counts: Mapping[type[Outcome], int]
    seconds: float
    cancelled: int = 0


Event: TypeAlias = (
    RunPlanned
    | VersionsUnused
    | StepDrifted
    | StepStarted
    | StepWaiting
    | StepRetrying
    | StepEnded
    | RunStopping
    | RunEnded
)
Reporter: TypeAlias = Callable[[Event], None]


def log_event(event: Event) -> None:
    """The reporter when there is no other: drift and waiting are told, the rest is for debugging."""
    match event:
        case VersionsUnused():
            _LOG.warning("no step has the name of these versions: %s", ", ".join(event.names))
        case StepDrifted():
            _LOG.warning(
                "step %s: %s since it was built, and the former result is served; "
                "to build it again: force=[%r], or on_drift='rebuild'",
                event.id,
                event.what,
                event.name,
            )
        case StepWaiting():
            _LOG.warning("step %s waits for %s", event.id, event.owner.describe())
        case StepRetrying():
            _LOG.warning(
                "step %s: %s; %s begins in %.1f s; %r",
                event.id,
                event.told,
                event.next,
                event.delay,
                event.error,
            )
        case _:
            _LOG.debug("%s", event)
