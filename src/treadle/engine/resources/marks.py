"""Says to a profiler which resource is at work in which verb.

On CUDA these are NVTX ranges, which Nsight shows beside the kernels. Elsewhere they are the spans of a
`UnitMeter`, which a `TraceSink` writes. A runner without marks calls its resources directly and pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from treadle.engine.resources.protocols import PlansAhead
from treadle.engine.resources.resource import Resource
from treadle.engine.resources.step import AdmitOutcome, ResourceStep, StepContext

if TYPE_CHECKING:
    from treadle.telemetry import UnitMeter

Mark = Callable[[str], AbstractContextManager[object]]
"""A block with a name."""


class Ranges(Protocol):
    """What `torch.cuda.nvtx` has of NVTX."""

    def range_push(self, msg: str) -> object:
        """Open a range."""

    def range_pop(self) -> object:
        """Close the one opened last."""


class NvtxMark:
    """A block that is a range, closed also when it fails."""

    def __init__(self, name: str, ranges: Ranges) -> None:
        self._name = name
        self._ranges = ranges

    def __enter__(self) -> None:
        self._ranges.range_push(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ranges.range_pop()


def cuda_ranges() -> Ranges | None:
    """NVTX where torch sees a GPU, else None."""
    # Here: who runs without marks, as a conductor does, need not have torch nor wait for it.
    try:
        import torch
    except ModuleNotFoundError:
        return None
    ranges: Ranges = torch.cuda.nvtx
    return ranges if torch.cuda.is_available() else None


def marked(resources: Mapping[str, Resource], mark: Mark) -> dict[str, Resource]:
    """The resources, each call of a verb in a block named "verb key"."""
    return {
        key: MarkedAhead(key, each, each, mark) if isinstance(each, PlansAhead) else Marked(key, each, mark)
        for key, each in resources.items()
    }


def meter_of_spans() -> UnitMeter:
    """Keeps the spans; `meter.stage` is their `Mark`."""
    # Here: telemetry loads psutil and its sinks, which a runner without marks need not wait for.
    from treadle.telemetry import UnitMeter

    return UnitMeter("engine", counted=False, spans=True)


class Marked:
    """A resource whose verbs are blocks of `mark`."""

    def __init__(self, key: str, resource: Resource, mark: Mark) -> None:
        self.key = key
        self._resource = resource
        self.mark = mark

    @property
    def depends_on(self) -> Collection[str]:
        """As the resource says."""
        return self._resource.depends_on

    def ingest(self, rid: str, overrides: object | None) -> None:
        """See `Resource`."""
        with self.mark(f"ingest {self.key}"):
            self._resource.ingest(rid, overrides)

    def admit(self, step: ResourceStep, ctx: StepContext) -> AdmitOutcome:
        """See `Resource`."""
        with self.mark(f"admit {self.key}"):
            return self._resource.admit(step, ctx)

    def rollback(self, step: ResourceStep, ctx: StepContext) -> None:
        """See `Resource`."""
        with self.mark(f"rollback {self.key}"):
            self._resource.rollback(step, ctx)

    def plan(self, step: ResourceStep, ctx: StepContext) -> object:
        """See `Resource`."""
        with self.mark(f"plan {self.key}"):
            return self._resource.plan(step, ctx)

    def commit(self, step: ResourceStep, ctx: StepContext) -> None:
        """See `Resource`."""
        with self.mark(f"commit {self.key}"):
            self._resource.commit(step, ctx)

    def remove(self, rid: str) -> None:
        """See `Resource`."""
        with self.mark(f"remove {self.key}"):
            self._resource.remove(rid)

    def check_integrity(self) -> None:
        """See `Resource`."""
        self._resource.check_integrity()


class MarkedAhead(Marked):
    """One that plans ahead."""

    def __init__(self, key: str, resource: Resource, ahead: PlansAhead, mark: Mark) -> None:
        super().__init__(key, resource, mark)
        self._ahead = ahead

    def promote(self, step: ResourceStep, ctx: StepContext) -> object:
        """See `PlansAhead`."""
        with self.mark(f"promote {self.key}"):
            return self._ahead.promote(step, ctx)

    def clear_preplan(self) -> None:
        """See `PlansAhead`."""
        with self.mark(f"clear_preplan {self.key}"):
            self._ahead.clear_preplan()
