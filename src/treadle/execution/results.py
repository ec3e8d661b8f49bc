"""What a run gave: the value of each step, and how each step ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from treadle.artifacts import Artifact, decode_value, read_record
from treadle.errors import ArtifactError, StepError, StepsFailedError, UnknownNameError
from treadle.kernel import Cached, Done, Failed, Outcome, Skipped

_SHOWN = 10


@dataclass(frozen=True)
class StepResult:
    """How one step ended. A cached step has the time and the seconds of the run that built it.

    The value of the outcome is the step's `Artifact`; what its function returned is in `Results`.
    """

    name: str
    outcome: Outcome
    output_path: str
    deps: tuple[str, ...]
    started: datetime | None = None
    seconds: float = 0.0


class Results(Mapping[str, Any]):
    """Step id -> what its function returned, or its `Artifact` when that was None.

    Values are read from the records when they are asked for. Steps that failed or were skipped have
    none; `outcomes` has every step.
    """

    def __init__(self, outcomes: Mapping[str, StepResult]) -> None:
        self.outcomes = outcomes

    def __getitem__(self, step_id: str) -> Any:
        if step_id not in self:
            raise UnknownNameError("step with a value", step_id, self)
        return load_value(self.outcomes[step_id].output_path)

    def __contains__(self, step_id: object) -> bool:
        result = self.outcomes.get(step_id) if isinstance(step_id, str) else None
        return result is not None and isinstance(result.outcome, Done | Cached)

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self.outcomes)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Results({', '.join(self)})"


def load_value(output_path: str) -> Any:
    """What the step that filled this folder returned, or its `Artifact` when that was None.

    Raises:
        ArtifactError: the record is gone or cannot be read.
    """
    record = read_record(output_path)
    if record is None:
        raise missing_record(output_path)
    try:
        value = decode_value(record.value)
    except ArtifactError as error:
        raise ArtifactError(f"{output_path}: {error}") from error
    return Artifact(output_path) if value is None else value


def missing_record(output_path: str) -> ArtifactError:
    """The error when what was done has vanished in between."""
    return ArtifactError(
        f"{output_path}: the step was done, and its record is gone; run again to build it anew"
    )


def as_error(results: Results) -> StepsFailedError:
    """The error of a run with failures: each failed step and its cause, each skipped one and its culprits."""
    ends = {key: each.outcome for key, each in results.outcomes.items()}
    failed = {key: end for key, end in ends.items() if isinstance(end, Failed)}
    skipped = {key: end for key, end in ends.items() if isinstance(end, Skipped)}
    lines = [
        f"{len(failed)} of {len(ends)} steps failed; skipped because of them: {len(skipped)}",
        *(f"  failed {key}: {_describe(each.error)}" for key, each in failed.items()),
        *(f"  skipped {key}: because of {_listed(each.because)}" for key, each in skipped.items()),
    ]
    errors = [_as_exception(key, each.error) for key, each in failed.items()]
    return StepsFailedError("\n".join(lines), errors, results)


def _describe(error: BaseException) -> str:
    """`Type: message`, also for an exception that fails to give its message."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failure:  # noqa: BLE001 - the broken message must not hide which step failed
        return f"{type(error).__name__}: (no message: its __str__ raised {type(failure).__name__})"


def _listed(culprits: tuple[str, ...]) -> str:
    """The culprits, the first of very many: a layer of failures times a layer of skips is a long text."""
    more = len(culprits) - _SHOWN
    return ", ".join(culprits[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _as_exception(step_id: str, error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    wrapped = StepError(f"step {step_id} left with {_describe(error)}")
    wrapped.__cause__ = error
    return wrapped
