"""One attempt at a step: what it is given, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

from treadle.artifacts import RecordHead
from treadle.artifacts.provenance import Provenance
from treadle.execution.step_spec import StepSpec
from treadle.kernel import Cached, Done, Failed
from treadle.storage.ledger import Held


class Task(NamedTuple):
    """One attempt: number `attempt` (from 1) at `step` in the run `run`.

    `builds` are those of the dependencies (step id -> build), `known` is the number of the newest build
    that the plan knows of. A `forced` task runs though its step is done. `code`, the hash of
    its function, and `origin` are what whoever planned has seen, where that is another process; else None.
    """

    step: StepSpec
    builds: Mapping[str, str]
    run: str
    attempt: int = 1
    known: int = 0
    forced: bool = False
    code: str | None = None
    origin: Provenance | None = None


class Served(NamedTuple):
    """The step is done: by this attempt, or by somebody else a moment before."""

    outcome: Done | Cached
    head: RecordHead
    seconds: float


class Broken(NamedTuple):
    """The attempt failed; with `started`, it has been noted in the ledger.

    `is_retried` is whether the error is of a type that the step is tried again after, where that was told
    before the error was sent; None where it still has that type. `by_force` when the attempt could not end
    by itself: its process is gone, or its body does not stop. `cancelled` when it was asked to stop, and did.
    """

    outcome: Failed
    started: datetime | None = None
    seconds: float = 0.0
    is_retried: bool | None = None
    by_force: bool = False
    cancelled: bool = False


Tried: TypeAlias = Served | Broken | Held
"""What came of an attempt; held is a step that another owner has."""
