"""The URL of a database, and how it is shown to people."""

from __future__ import annotations

import re

from treadle.errors import ArgumentError

_SCHEMES = ("postgresql://", "postgres://")
_AFTER_THE_USER = re.compile(r"(://[^/?#@:]*):[^/?#]*@")
_IN_THE_QUERY = re.compile(r"\b((?:ssl)?password=)[^&]*")


def check_url(url: str) -> None:
    """See that `url` is one of PostgreSQL.

    Raises:
        ArgumentError: it has another form; a password in it is not shown.
    """
    if not url.startswith(_SCHEMES):
        raise ArgumentError(
            f"expected a URL such as postgresql://user@host:5432/database, got {shown_url(url)!r}"
        )


def shown_url(url: str) -> str:
    """The URL without its passwords, for messages and records."""
    return _IN_THE_QUERY.sub(r"\1***", _AFTER_THE_USER.sub(r"\1:***@", url))
