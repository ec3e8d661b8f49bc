"""Lengths of time that a user may set: by the environment, or in the project's settings."""

from __future__ import annotations

import math
import os

from treadle.errors import ArgumentError
from treadle.settings import find_settings


def seconds_setting(
    name: str, default: float, given: float | None = None, *, least: float | None = None
) -> float:
    """`given`, else `TREADLE_NAME` of the environment, else `name` in the project's settings.

    Raises:
        ArgumentError: it is no number above 0; with `least`, below that.
    """
    if given is not None:
        return _checked(given, name, least)
    variable = f"TREADLE_{name.upper()}"
    if (text := os.environ.get(variable)) is not None:
        return _checked(text, variable, least)
    settings = find_settings()
    return _checked(settings.table.get(name, default), f"{settings.file}: {name}", least)


def _checked(value: object, where: str, least: float | None) -> float:
    try:
        seconds = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        seconds = math.nan
    enough = seconds > 0 if least is None else seconds >= least
    if not (enough and seconds < math.inf):
        bound = "above 0" if least is None else f"from {least:g}"
        raise ArgumentError(f"{where}: expected a number of seconds {bound}, got {value!r}")
    return seconds
