"""What the run type `generate` writes for a row, and keeps of it in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import pyarrow as pa

from treadle.engine import Completion
from treadle.processing.sections import ANSWER_COLUMNS


@dataclass(frozen=True)
class Answer:
    """The answer to one row; `seconds` is its share of the time in which the engine worked."""

    answer: str
    prompt_tokens: int
    new_tokens: int
    finish_reason: str
    seconds: float

    @classmethod
    def of(cls, completion: Completion) -> Self:
        """The answer that a completion without an error gives."""
        new = len(completion.token_ids)
        reason = completion.finish_reason
        return cls(completion.text, completion.prompt_tokens, new, reason, round(completion.seconds, 6))

    def kept(self) -> dict[str, Any]:
        """As plain values, from which `Answer(**kept)` makes it again."""
        return asdict(self)


_TYPES = dict(
    zip(ANSWER_COLUMNS, (pa.string(), pa.int32(), pa.int32(), pa.string(), pa.float64()), strict=True)
)


def answers_table(columns: Mapping[str, pa.Array[Any]], answers: Sequence[Answer]) -> pa.Table:
    """The answers beside columns of their rows, in the same order."""
    made = {name: pa.array([getattr(each, name) for each in answers], kind) for name, kind in _TYPES.items()}
    return pa.table({**columns, **made})


def sums_of(answers: Sequence[Answer], before: Sequence[Answer] = ()) -> dict[str, int]:
    """What the answers add to the sums of a run; those of them that it had `before` are also told apart."""
    sums = _costs(answers) | {"cut_answers": sum(each.finish_reason == "length" for each in answers)}
    if before:
        kept = {f"{name}_before": cost for name, cost in _costs(before).items()}
        sums |= {"answered_before": len(before), **kept}
    return sums


def _costs(answers: Sequence[Answer]) -> dict[str, int]:
    return {
        "prompt_tokens": sum(each.prompt_tokens for each in answers),
        "new_tokens": sum(each.new_tokens for each in answers),
        "engine_milliseconds": round(1000 * sum(each.seconds for each in answers)),
    }
