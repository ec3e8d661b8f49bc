"""Steps: what they are, when they are done, and how a graph of them is run."""

from treadle.execution.lazy import Handle, Runtime, Step, StepContext, lower, step
from treadle.execution.report import (
    CodeChanged,
    Event,
    Reporter,
    RunEnded,
    RunPlanned,
    RunStopping,
    StepEnded,
    StepStarted,
    log_event,
)
from treadle.execution.results import Results, StepResult, load_value
from treadle.execution.step_runner import OnFailure, StepRunner
from treadle.execution.step_spec import StepSpec

__all__ = [
    "CodeChanged",
    "Event",
    "Handle",
    "OnFailure",
    "Reporter",
    "Results",
    "RunEnded",
    "RunPlanned",
    "RunStopping",
    "Runtime",
    "Step",
    "StepContext",
    "StepEnded",
    "StepResult",
    "StepRunner",
    "StepSpec",
    "StepStarted",
    "load_value",
    "log_event",
    "lower",
    "step",
]
