"""What is asked of groups of rows: the columns that make a group, and the aggregates of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from treadle.errors import ArgumentError

FUNCTIONS = ("count", "sum", "min", "max", "mean", "list")


@dataclass(frozen=True)
class Aggregate:
    """One column made of the rows of a group.

    `count` is the number of rows, with a column of those where it is not null; `sum`, `min`, `max` and `mean`
    leave nulls aside; `list` has all values in the order of rows, nulls too.
    """

    function: str
    column: str | None = None


@dataclass(frozen=True)
class Grouping:
    """Rows with equal `keys` make a group, of which the `aggregates` are told, by the name of their column.

    Null is a key like any other. Keys are numbers, bools, text, bytes, dates and timestamps. `types` say what
    the values of some columns must be: string, int64 or float64.

    Raises ArgumentError: no key or no aggregate, names that are not distinct, an unknown function, a function
    without its column.
    """

    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    types: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [*self.keys, *self.aggregates]
        if not self.keys or not self.aggregates:
            given = f"{list(self.keys)} and {list(self.aggregates)}"
            raise ArgumentError(
                f"keys and sums (or aggregates) must be given, at least one each, got {given}"
            )
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            given = ", ".join(map(repr, twice))
            raise ArgumentError(f"keys and sums (or aggregates) must be distinct, got twice: {given}")
        for name, each in self.aggregates.items():
            if each.function not in FUNCTIONS:
                raise ArgumentError(f"{name}: expected one of {', '.join(FUNCTIONS)}, got {each.function!r}")
            if each.column is None and each.function != "count":
                raise ArgumentError(f"{name}: {each.function} needs a column")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        wanted = [each.column for each in self.aggregates.values() if each.column is not None]
        return tuple(dict.fromkeys([*self.keys, *wanted]))
