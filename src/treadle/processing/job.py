"""What a pattern works with, and what a run returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from treadle.domain.result import Counters
from treadle.processing.account import Account, UnitCount
from treadle.processing.started import StartedRun
from treadle.processing.workplace import Workplace
from treadle.storage import OutputManifest, Session, WorkUnit
from treadle.telemetry import MetricsSnapshot

WHOLE: Final = WorkUnit(id="00000-all", index=0, source="", bytes=0)
"""The unit of an output that is made from all inputs together."""


@dataclass(frozen=True)
class Job(StartedRun):
    """One run, ready to be carried out by a pattern.

    What the pattern writes through `session` stays invisible until the run commits it. `account` adds up what
    became of every row, `workplace` is where the units are worked on.
    """

    session: Session
    account: Account
    workplace: Workplace


@dataclass(frozen=True)
class RunOutcome:
    """A run that finished; one that failed or was cancelled raises instead.

    `units` is the account of each unit, in the order in which they were accounted for; `account` is the file
    that has it too, None for a run that reads no rows through treadle. `first_reasons` says why the first
    rejected rows were.
    """

    counters: Counters
    outputs: Mapping[str, OutputManifest]
    metrics: MetricsSnapshot | None
    seconds: float
    units: tuple[UnitCount, ...] = ()
    account: str | None = None
    first_reasons: tuple[str, ...] = ()
