"""treadle runs the steps of machine-learning work: an experiment, a run, a forward pass.

The names are loaded when they are asked for, so that `import treadle` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

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

_MODULES = {
    "artifacts": ("Artifact",),
    "execution": (
        "ArtifactStep",
        "Retry",
        "Runtime",
        "StepContext",
        "StepRunner",
        "StepSpec",
        "Versions",
        "adopt",
        "lower",
        "remote",
        "step",
        "sweep",
    ),
    "experiment": ("plan", "run"),
}
__getattr__, __dir__ = later(__name__, _MODULES)
