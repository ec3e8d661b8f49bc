"""What a transform returns for a batch of rows: outputs, rejects, counters and state.

Counters add with `+`, so that workers never share one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from treadle.domain.term_registry import TermRegistry


@dataclass(frozen=True)
class Reject:
    """A row that cannot be used: `index` is its position in the batch, from 0.

    `kind` is a short stable name such as "wrong-type", `reason` a sentence.
    """

    index: int
    reason: str
    kind: str = "rejected"


@dataclass(frozen=True)
class Counters:
    """Row counts of a batch, a unit or a whole run; `extra` holds further sums by name."""

    rows_in: int = 0
    rows_out: int = 0
    filtered: int = 0
    rejected: int = 0
    extra: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Counters) -> Counters:
        names = sorted({*self.extra, *other.extra})
        return Counters(
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.filtered + other.filtered,
            self.rejected + other.rejected,
            {name: self.extra.get(name, 0) + other.extra.get(name, 0) for name in names},
        )

    @property
    def balanced(self) -> bool:
        """Whether every row is accounted for: in = out + filtered + rejected, none of them below 0."""
        parts = (self.rows_out, self.filtered, self.rejected)
        return min(parts) >= 0 and self.rows_in == sum(parts)


@dataclass(frozen=True)
class ProcessResult:
    """What a transform makes of one batch; `state` is the part that is merged over batches.

    The rows of an output are a record batch or Python records. `kept` has the position in the batch of each
    row given out, in a chain of transforms; None: nobody knows.
    """

    outputs: Mapping[str, pa.RecordBatch | Sequence[Mapping[str, Any]]]
    rejects: tuple[Reject, ...]
    counters: Counters
    state: TermRegistry | None = None
    kept: Sequence[int] | None = None


Transform: TypeAlias = "Callable[[pa.RecordBatch], ProcessResult]"
"""A pure function of a batch of rows."""
