"""Steps: what they are, when they are done, and how a graph of them is run."""

from treadle.execution.freshness import OnDrift, Reason, Why
from treadle.execution.handles.adopt import adopt
from treadle.execution.handles.artifact_step import ArtifactStep, materialized_config
from treadle.execution.handles.remote import remote
from treadle.execution.handles.sweep import Point, sweep
from treadle.execution.handles.versions import Versions
from treadle.execution.lazy import Handle, Runtime, Step, StepContext, lower, step
from treadle.execution.plan import PlannedStep, RunPlan, StepState
from treadle.execution.report import (
    Event,
    Reporter,
    RunEnded,
    RunPlanned,
    RunStopping,
    StepDrifted,
    StepEnded,
    StepRetrying,
    StepStarted,
    StepWaiting,
    VersionsUnused,
    log_event,
)
from treadle.execution.results import Results, StepResult
from treadle.execution.retry import Retry
from treadle.execution.step_runner import OnFailure, StepRunner
from treadle.execution.step_spec import StepSpec

__all__ = [
    "ArtifactStep",
    "Event",
    "Handle",
    "OnDrift",
    "OnFailure",
    "PlannedStep",
    "Point",
    "Reason",
    "Reporter",
    "Results",
    "Retry",
    "RunEnded",
    "RunPlan",
    "RunPlanned",
    "RunStopping",
    "Runtime",
    "Step",
    "StepContext",
    "StepDrifted",
    "StepEnded",
    "StepResult",
    "StepRetrying",
    "StepRunner",
    "StepSpec",
    "StepStarted",
    "StepState",
    "StepWaiting",
    "Versions",
    "VersionsUnused",
    "Why",
    "adopt",
    "log_event",
    "lower",
    "materialized_config",
    "remote",
    "step",
    "sweep",
]
