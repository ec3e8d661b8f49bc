"""treadle runs the steps of machine-learning work: an experiment, a run, a forward pass.

The names are loaded when they are asked for, so that `import treadle` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.artifacts import Artifact
    from treadle.execution import StepRunner, StepSpec
    from treadle.experiment import Runtime, StepContext, lower, run, step

__version__ = "0.1.0"

__all__ = ["Artifact", "Runtime", "StepContext", "StepRunner", "StepSpec", "lower", "run", "step"]

_ROOMS = {
    "Artifact": "treadle.artifacts",
    "Runtime": "treadle.experiment",
    "StepContext": "treadle.experiment",
    "StepRunner": "treadle.execution",
    "StepSpec": "treadle.execution",
    "lower": "treadle.experiment",
    "run": "treadle.experiment",
    "step": "treadle.experiment",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    return getattr(importlib.import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
