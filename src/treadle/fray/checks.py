"""Numbers that a caller gives: checked before anything is done with them."""

from __future__ import annotations

import math

from treadle.errors import ArgumentError


def check_count(name: str, value: object) -> int:
    """`value`, which is a whole number of at least 1; `name` is what messages call it.

    Raises:
        ArgumentError: it is something else.
    """
    if type(value) is not int or value < 1:
        raise ArgumentError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return value


def check_amount(name: str, value: object, *, whole: bool = False) -> None:
    """See that `value` is a number of at least 0, and finite; `name` is what messages call it.

    Raises:
        ArgumentError: it is something else.
    """
    fits = isinstance(value, int) or (isinstance(value, float) and not whole)
    if not fits or isinstance(value, bool) or not 0 <= value < math.inf:  # type: ignore[operator]
        kind = "a whole number" if whole else "a number"
        raise ArgumentError(f"{name}: expected {kind} of at least 0, got {value!r}")
