"""Optional packages: asked for before the work starts, not in the middle of it."""

from __future__ import annotations

import importlib.util

from treadle.errors import MissingExtraError


def check_extra(extra: str, what_for: str, *modules: str) -> None:
    """See that the modules can be imported, without importing them.

    Raises:
        MissingExtraError: one cannot; the message is the line that installs `extra`.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError(module, extra, what_for)
