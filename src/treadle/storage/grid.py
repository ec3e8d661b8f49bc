"""Records turned on their side: the values of each column, and which Python types they have.

Most rows of a file have the same columns in the same order; what can be said of a column at once need not be
asked of each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cells:
    """The values that a column has, and the index of the row of each (not of what is inside of cells)."""

    values: Sequence[Any]
    at: Sequence[int] = ()

    @cached_property
    def kinds(self) -> set[type]:
        """The Python types of the values."""
        return set(map(type, self.values))

    @cached_property
    def items(self) -> Cells:
        """What is in those values that are lists, one after the other."""
        return Cells(list(chain.from_iterable(self._of(list))))

    @cached_property
    def fields(self) -> Grid:
        """The cells of those values that are objects."""
        return grid_of(self._of(dict))

    def _of(self, kind: type) -> Sequence[Any]:
        if self.kinds == {kind}:
            return self.values
        return [value for value in self.values if type(value) is kind]


@dataclass(frozen=True)
class Grid:
    """The cells of some rows by column, in order of appearance. `even`: every row has all, in this order."""

    cells: Mapping[str, Cells]
    even: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.cells)


def grid_of(rows: Sequence[Row]) -> Grid:
    """The cells of rows; takes time by the number of cells, however many columns there are."""
    layouts = set(map(tuple, rows))
    if len(layouts) == 1:
        everywhere = range(len(rows))
        columns = zip(*[row.values() for row in rows], strict=True)
        names: tuple[str, ...] = layouts.pop()
        return Grid(
            {name: Cells(values, everywhere) for name, values in zip(names, columns, strict=True)}, True
        )
    found: dict[str, tuple[list[Any], list[int]]] = {}
    for index, row in enumerate(rows):
        for name, value in row.items():
            values, at = found.setdefault(name, ([], []))
            values.append(value)
            at.append(index)
    return Grid({name: Cells(*each) for name, each in found.items()}, not rows)
