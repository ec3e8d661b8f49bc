"""Everything stateful in the engine, and the cycle that drives it."""

from treadle.engine.resources.resource import Resource
from treadle.engine.resources.runner import StepRunner, topo_sort
from treadle.engine.resources.step import (
    AdmitOutcome,
    FullAdmitOutcome,
    Refusal,
    ResourceStep,
    Segment,
    StepContext,
    SubmoduleStep,
)

__all__ = [
    "AdmitOutcome",
    "FullAdmitOutcome",
    "Refusal",
    "Resource",
    "ResourceStep",
    "Segment",
    "StepContext",
    "StepRunner",
    "SubmoduleStep",
    "topo_sort",
]
