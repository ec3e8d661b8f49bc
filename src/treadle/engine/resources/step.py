"""What one step carries: who adds how much to which resource, and what each resource answers.

A step is declared once per forward pass, so these are small and made without ceremony.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, TypeVar

from treadle.errors import EngineError

T = TypeVar("T")


class Segment(NamedTuple):
    """One request's addition to one of its streams: `span` tokens, 0 for a padding row.

    A step has one segment for a stream at most.
    """

    request_id: str
    span: int
    label: str = "main"


@dataclass(frozen=True)
class ResourceStep:
    """What one resource has to do. Without segments of its own it gets those of the batch."""

    segments: tuple[Segment, ...] | None = None

    @property
    def rows(self) -> tuple[Segment, ...]:
        """The segments.

        Raises:
            EngineError: the step belongs to no `SubmoduleStep`, so nothing was inherited.
        """
        if self.segments is None:
            raise EngineError("a resource step without segments must be put into a SubmoduleStep first")
        return self.segments


@dataclass
class StepContext:
    """The engine's own part of a step.

    Attributes:
        plan_results: what each resource planned, filed as soon as it is known.
    """

    plan_results: dict[str, object] = field(default_factory=dict)

    def result(self, key: str, kind: type[T]) -> T:
        """What resource `key` planned in this step.

        Raises:
            EngineError: it planned nothing yet, or something that is no `kind`.
        """
        found = self.plan_results.get(key)
        if not isinstance(found, kind):
            raise EngineError(
                f"the plan of resource {key!r} should be a {kind.__name__}, got {type(found).__name__}; "
                "a resource that reads it must name it in depends_on, and the step must declare it"
            )
        return found


@dataclass
class SubmoduleStep:
    """One forward pass of one node: resource key -> its step, the batch's segments, the context."""

    resources: Mapping[str, ResourceStep]
    segments: tuple[Segment, ...]
    ctx: StepContext = field(default_factory=StepContext)

    def __post_init__(self) -> None:
        self.resources = {
            key: replace(step, segments=self.segments) if step.segments is None else step
            for key, step in self.resources.items()
        }


class Refusal(Enum):
    """Why a resource cannot take a step now: the first two pass, the third does not."""

    ALLOCATION_FAILED = "allocation failed: try again when something was given back"
    OFFLOADING = "offloading: try again when the request was loaded back"
    RUNTIME_ERROR = "runtime error: the request cannot go on"

    def __str__(self) -> str:
        return self.value


class AdmitOutcome(NamedTuple):
    """One resource's answer. `ok` without `ready` means admitted, but transfers are still going on."""

    ok: bool
    ready: bool
    reason: Refusal | None = None


class FullAdmitOutcome(NamedTuple):
    """The answer of all: `ready` only when every resource is, `key` the one that refused."""

    ok: bool
    ready: bool
    reason: Refusal | None = None
    key: str | None = None


READY = AdmitOutcome(ok=True, ready=True)
NO_ROOM = AdmitOutcome(ok=False, ready=False, reason=Refusal.ALLOCATION_FAILED)
