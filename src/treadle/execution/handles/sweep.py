"""sweep: one handle of a step for each point of a grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from treadle.artifacts.fingerprint import canonical_text
from treadle.errors import ArgumentError
from treadle.execution.handles.handle import Handle
from treadle.execution.lazy import Step

R = TypeVar("R")


class Point(Mapping[str, Any]):
    """A point of a grid: values by name, sorted by name, that cannot change; prints as `lr=0.1, seed=3`.

    Two points are equal when their values have one canonical form.

    Raises:
        IdentityError: a value has no canonical form.
    """

    __slots__ = ("_text", "_values")

    def __init__(self, /, **values: Any) -> None:
        self._values = dict(sorted(values.items()))
        self._text = canonical_text(self._values, "point", Handle)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Point) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._values.items())

    def __repr__(self) -> str:
        return f"Point({self})"


def sweep(step: Step[R], grid: Mapping[str, Iterable[Any]], /, **common: Any) -> dict[Point, Handle[R]]:
    """The handles of `step` by the points of `grid`, each with `common` as its other arguments.

    The points come in the order of their sorted names, the last of which changes first, and the values
    in the order in which they were given.

    Raises:
        ArgumentError: it is no step, a name is given twice, or has no values.
        IdentityError: an argument has no canonical form.
    """
    if not isinstance(step, Step):
        raise ArgumentError(f"sweep: expected a step (@step makes one), got {step!r}")
    if both := sorted(grid.keys() & common.keys()):
        raise ArgumentError(f"sweep of {step.name!r}: given in the grid and beside it: {', '.join(both)}")
    axes = {name: _values(f"sweep of {step.name!r}: {name}", grid[name]) for name in sorted(grid)}
    points = (Point(**dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values()))
    return {point: step(**point, **common) for point in points}


def _values(where: str, values: object) -> tuple[Any, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ArgumentError(f"{where}: expected several values, got {values!r}: put it into a list")
    listed = tuple(values)
    if not listed:
        raise ArgumentError(f"{where}: expected one value or more, got none")
    return listed
