"""What a run gave: the value of each step, and how each step ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from treadle.artifacts import open_store
from treadle.errors import StepError, StepsFailedError, UnknownNameError
from treadle.execution.blame import describe
from treadle.kernel import Cached, Done, Failed, Outcome, Skipped

_SHOWN = 10
KEPT = 10_000
"""How many done steps the results of a stream keep, the latest; and all that failed or were skipped."""


class StepResult(NamedTuple):
    """How one step ended. A cached step has the time and the seconds of the run that built it.

    The value of the outcome is the step's `Artifact`; what its function returned is in `Results`.
    """

    name: str
    outcome: Outcome
    output_path: str
    prefix: str
    deps: tuple[str, ...]
    attempts: int = 0
    started: datetime | None = None
    seconds: float = 0.0
    reason: str = ""


class Results(Mapping[str, Any]):
    """Step id -> what its function returned, or its `Artifact` when that was None.

    Values are read from the store when they are asked for. Steps that failed or were skipped have
    none; `outcomes` has every step, except the oldest done ones of a stream of more than 10,000 steps.
    `counts` says how many ended how.
    """

    def __init__(self, outcomes: Mapping[str, StepResult], counts: Mapping[type[Outcome], int]) -> None:
        self.outcomes = outcomes
        self.counts = counts

    def __getitem__(self, step_id: str) -> Any:
        if step_id not in self:
            raise UnknownNameError("step with a value", step_id, self)
        result = self.outcomes[step_id]
        return open_store(result.prefix).load_value(result.output_path)

    def __contains__(self, step_id: object) -> bool:
        result = self.outcomes.get(step_id) if isinstance(step_id, str) else None
        return result is not None and isinstance(result.outcome, Done | Cached)

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self.outcomes)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Results({', '.join(self)})"


def as_error(results: Results) -> StepsFailedError:
    """The error of a run with failures: each failed step and its cause, each skipped one and its culprits."""
    ends = {key: each.outcome for key, each in results.outcomes.items()}
    failed = {key: end for key, end in ends.items() if isinstance(end, Failed)}
    skipped = {key: end for key, end in ends.items() if isinstance(end, Skipped)}
    total = sum(results.counts.values())
    lines = [
        f"{len(failed)} of {total} steps failed; skipped because of them: {len(skipped)}",
        *(f"  failed {key}: {describe(each.error)}" for key, each in failed.items()),
        *(f"  skipped {key}: {because(each)}" for key, each in skipped.items()),
    ]
    errors = [_as_exception(key, each.error) for key, each in failed.items()]
    return StepsFailedError("\n".join(lines), errors, results)


def because(skipped: Skipped) -> str:
    """Because of whom: the first of very many, for a layer of failures times a layer of skips is long."""
    culprits = skipped.because
    more = len(culprits) - _SHOWN
    return f"because of {', '.join(culprits[:_SHOWN])}" + (f" and {more} more" if more > 0 else "")


def _as_exception(step_id: str, error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    wrapped = StepError(f"step {step_id} left with {describe(error)}")
    wrapped.__cause__ = error
    return wrapped
