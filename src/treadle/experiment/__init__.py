"""Experiments: lazy steps, lowered and run."""

from treadle.execution import Handle, Runtime, StepContext, lower, step
from treadle.experiment.run import run

__all__ = ["Handle", "Runtime", "StepContext", "lower", "run", "step"]
