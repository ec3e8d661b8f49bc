"""Experiments: lazy steps, lowered, planned and run."""

from treadle.execution import (
    ArtifactStep,
    Handle,
    Runtime,
    StepContext,
    Versions,
    adopt,
    lower,
    step,
    sweep,
)
from treadle.experiment.run import plan, run

__all__ = [
    "ArtifactStep",
    "Handle",
    "Runtime",
    "StepContext",
    "Versions",
    "adopt",
    "lower",
    "plan",
    "run",
    "step",
    "sweep",
]
