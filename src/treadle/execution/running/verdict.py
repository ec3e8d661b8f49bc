"""What follows from an attempt: the step is done, waits, is tried again, or has failed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from treadle.errors import DependencyRebuiltError, LeaseLostError, StepTimeoutError, WorkerLostError
from treadle.execution.retry import NEVER, Retry
from treadle.execution.running.task import Broken, Served, Tried
from treadle.execution.running.unfinished import Unit
from treadle.storage.ledger import Held

_LOST = (LeaseLostError, WorkerLostError, DependencyRebuiltError)


@dataclass(frozen=True, slots=True)
class Again:
    """The step is tried again after `delay` seconds; `lost` when it was no fault of its own."""

    error: BaseException
    started: datetime | None
    seconds: float
    delay: float
    lost: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The step has failed."""

    error: BaseException
    started: datetime | None
    seconds: float


Verdict: TypeAlias = Served | Held | Again | GiveUp
"""Served: it is done. Held: another owner has it."""


def judge(unit: Unit, tried: Tried) -> Verdict:
    """What follows from the attempt that has just ended."""
    return _after_failure(unit, tried) if isinstance(tried, Broken) else tried


def _after_failure(unit: Unit, broken: Broken) -> Again | GiveUp:
    retry = unit.step.retry or NEVER
    error = broken.outcome.error
    lost = isinstance(error, _LOST)
    if unit.late and not lost and not isinstance(error, StepTimeoutError):
        error = _timed_out(unit, error)
    used, granted = (unit.losses + 1, retry.losses + 1) if lost else (unit.attempt, retry.attempts)
    if used < granted and (lost or _is_retried(broken, error, retry)):
        chance = random.random()  # noqa: S311 - spreads retries; nothing is secret
        return Again(error, broken.started, broken.seconds, retry.delay_before(used + 1, chance), lost)
    if broken.by_force and isinstance(error, WorkerLostError) and unit.losses:
        error = _lost_again(unit, error)
    return GiveUp(error, broken.started, broken.seconds)


def _is_retried(broken: Broken, error: BaseException, retry: Retry) -> bool:
    """Whether the error is of a type after which the step is tried again."""
    if error is broken.outcome.error and broken.is_retried is not None:
        return broken.is_retried
    return isinstance(error, retry.on)


def _lost_again(unit: Unit, error: WorkerLostError) -> WorkerLostError:
    times = f"{unit.losses + 1} workers were lost under it, and Retry(losses={unit.losses}) grants no more"
    again = WorkerLostError(f"step {unit.key}: {times}; the last: {error}")
    again.__cause__ = error
    return again


def _timed_out(unit: Unit, error: BaseException) -> StepTimeoutError:
    late = StepTimeoutError(f"step {unit.key}: it took longer than its timeout of {unit.step.timeout:g} s")
    late.__cause__ = error
    return late
