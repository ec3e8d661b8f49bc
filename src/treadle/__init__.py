"""treadle runs the steps of machine-learning work: an experiment, a run, a forward pass.

The names are loaded when they are asked for, so that `import treadle` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.artifacts import Artifact
    from treadle.execution import (
        ArtifactStep,
        Retry,
        Runtime,
        StepContext,
        StepRunner,
        StepSpec,
        Versions,
        adopt,
        lower,
        remote,
        step,
        sweep,
    )
    from treadle.experiment import plan, run

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "ArtifactStep",
    "Retry",
    "Runtime",
    "StepContext",
    "StepRunner",
    "StepSpec",
    "Versions",
    "adopt",
    "lower",
    "plan",
    "remote",
    "run",
    "step",
    "sweep",
]

_ROOMS = {"Artifact": "artifacts", "plan": "experiment", "run": "experiment"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'treadle' has no attribute {name!r}")
    return getattr(importlib.import_module(f"treadle.{_ROOMS.get(name, 'execution')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
