"""The run scale: a manifest carried out over shards of rows, from the context to the outcome.

The names are loaded when they are asked for: the check of a manifest needs no tables.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.processing.context import RunContext
    from treadle.processing.dispatch import run_from_manifest
    from treadle.processing.job import Job, RunOutcome

__all__ = ["Job", "RunContext", "RunOutcome", "run_from_manifest"]

_MODULES = {
    "context": ("RunContext",),
    "dispatch": ("run_from_manifest",),
    "job": ("Job", "RunOutcome"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
