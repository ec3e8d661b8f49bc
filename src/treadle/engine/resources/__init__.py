"""Everything stateful in the engine, and the cycle that drives it."""

from treadle.engine.resources.protocols import Holdings
from treadle.engine.resources.resource import PlansOnly, ReservesNothing, Resource
from treadle.engine.resources.runner import StepRunner, topo_sort
from treadle.engine.resources.step import (
    NO_ROOM,
    READY,
    AdmitOutcome,
    CachedPrefix,
    FullAdmitOutcome,
    NodeResourceSpec,
    PublishedInfo,
    Refusal,
    ResourceStep,
    Segment,
    StepContext,
    SubmoduleStep,
)

__all__ = [
    "NO_ROOM",
    "READY",
    "AdmitOutcome",
    "CachedPrefix",
    "FullAdmitOutcome",
    "Holdings",
    "NodeResourceSpec",
    "PlansOnly",
    "PublishedInfo",
    "Refusal",
    "ReservesNothing",
    "Resource",
    "ResourceStep",
    "Segment",
    "StepContext",
    "StepRunner",
    "SubmoduleStep",
    "topo_sort",
]
