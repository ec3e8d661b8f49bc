"""The version of a step: a day of the calendar, or `dev`.

2026.02.03      what was built on that day; a second build of the day is 2026.02.03.1
dev             under work: built again by every run
mine-dev        the same, beside that of somebody else
"""

from __future__ import annotations

import datetime
import re

from treadle.errors import ArgumentError

_DAY = re.compile(r"(\d{4})\.(\d{2})\.(\d{2})(?:\.(?:0|[1-9]\d*))?", re.ASCII)
_DEV = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]*-)?dev")


def check_version(version: object, where: str) -> str:
    """`version`, when it is one; `where` begins the message when it is none.

    Raises:
        ArgumentError: it is neither a day of the calendar nor a dev version; says why.
    """
    if isinstance(version, str) and (_DEV.fullmatch(version) or not (why := _fault(version))):
        return version
    why = _fault(version) if isinstance(version, str) else f"it is of the type {type(version).__name__}"
    raise ArgumentError(
        f"{where}: expected a day such as '2026.02.03' (its second build '2026.02.03.1'), "
        f"'dev' or 'LABEL-dev', got {version!r}: {why}"
    )


def is_dev(version: str | None) -> bool:
    """Whether this is a version that every run builds again."""
    return version is not None and (version == "dev" or version.endswith("-dev"))


def _fault(version: str) -> str:
    """Why this is no calendar version; empty when it is one."""
    match = _DAY.fullmatch(version)
    if match is None:
        return "it does not have the form YYYY.MM.DD or YYYY.MM.DD.N"
    try:
        datetime.date(*map(int, match.groups()))
    except ValueError as error:
        return f"there is no such day ({error})"
    return ""
