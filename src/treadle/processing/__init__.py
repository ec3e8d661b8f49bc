"""The run scale: a manifest carried out over shards of rows, from the context to the outcome.

The names are loaded when they are asked for: the check of a manifest needs no tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.processing.context import RunContext
    from treadle.processing.dispatch import run_from_manifest
    from treadle.processing.job import RunOutcome

__all__ = ["RunContext", "RunOutcome", "run_from_manifest"]

_MODULES = {
    "context": ("RunContext",),
    "dispatch": ("run_from_manifest",),
    "job": ("RunOutcome",),
}
__getattr__, __dir__ = later(__name__, _MODULES)
