"""The in-memory registry of a partition: how often each term occurs, in total or per group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

Group = int | str | None
Counts = defaultdict[Group, Counter[str]]


def _counts() -> Counts:
    return defaultdict(Counter)


@dataclass
class TermRegistry:
    """Counts of terms, and of the documents that hold them, per group. Registries add with `+`.

    `group_type` is the Arrow type of the group column, None for a registry without groups (whose group is
    None).
    """

    group_type: pa.DataType | None = None
    counts: Counts = field(default_factory=_counts)
    documents: Counts = field(default_factory=_counts)

    def add(self, terms: Iterable[str], group: Group = None) -> None:
        """Count one document's terms."""
        terms = list(terms)
        self.counts[group].update(terms)
        self.documents[group].update(dict.fromkeys(terms, 1))

    def __add__(self, other: TermRegistry) -> TermRegistry:
        import pyarrow as pa  # here: see `transforms`

        # The groups of the rows so far may all have been null, which have no type yet.
        unknown = self.group_type is None or pa.types.is_null(self.group_type)
        total = TermRegistry(
            other.group_type if unknown and other.group_type is not None else self.group_type
        )
        for each in (self, other):
            for mine, theirs in ((total.counts, each.counts), (total.documents, each.documents)):
                for group, counted in theirs.items():
                    mine[group].update(counted)
        return total

    @property
    def tokens(self) -> int:
        """The number of terms counted."""
        return sum(counted.total() for counted in self.counts.values())

    def to_table(self) -> pa.Table:
        """Columns term: string, [group], count: int64, documents: int64; sorted by term, then group."""
        import pyarrow as pa  # here: see `transforms`

        rows = sorted(
            (term, group, count) for group, counted in self.counts.items() for term, count in counted.items()
        )
        columns = {
            "term": pa.array([term for term, _, _ in rows], pa.string()),
            "group": pa.array([group for _, group, _ in rows], self.group_type or pa.null()),
            "count": pa.array([count for _, _, count in rows], pa.int64()),
            "documents": pa.array([self.documents[group][term] for term, group, _ in rows], pa.int64()),
        }
        if self.group_type is None:
            del columns["group"]
        return pa.table(columns)
