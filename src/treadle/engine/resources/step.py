"""What one step carries: who adds how much to which resource, and what each resource answers.

A step is declared once per forward pass, so these are small and made without ceremony. A conductor reads
them in a process that computes nothing: no torch here.
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
    def request_ids(self) -> frozenset[str]:
        """All requests that it reads or changes."""
        return frozenset(segment.request_id for segment in self.rows)

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
        request_ids: the requests that the step computes for, in the order of their rows.
        padded_request_ids: these and then the padding rows that fill up a captured shape; just these
            when there are none.
        graph_walk: the walk that the step runs, for all requests that `request_walks` does not name.
        request_walks: request -> its walk, where walks are combined in one step.
        slot: which set of static buffers the step runs in; None when it is not captured.
        is_preplan: the step is admitted and planned one step ahead. Set by the runner in each verb.

    Raises:
        EngineError: `padded_request_ids` do not begin with `request_ids`.
    """

    plan_results: dict[str, object] = field(default_factory=dict)
    request_ids: tuple[str, ...] = ()
    padded_request_ids: tuple[str, ...] = ()
    graph_walk: str | None = None
    request_walks: Mapping[str, str] = field(default_factory=dict)
    slot: int | None = None
    is_preplan: bool = False

    def __post_init__(self) -> None:
        if not self.padded_request_ids:
            self.padded_request_ids = self.request_ids
        elif self.padded_request_ids[: len(self.request_ids)] != self.request_ids:
            raise EngineError(
                f"padding rows follow the requests: expected {self.request_ids} first, "
                f"got {self.padded_request_ids}"
            )

    @property
    def padding_ids(self) -> tuple[str, ...]:
        """The padding rows."""
        return self.padded_request_ids[len(self.request_ids) :]

    def walk_of(self, rid: str) -> str | None:
        """The walk that the step runs for one request."""
        return self.request_walks.get(rid, self.graph_walk)

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
    """One forward pass of one node: resource key -> its step, the batch's segments, the context.

    Raises:
        EngineError: two segments for one stream, or a span below 0.
    """

    resources: Mapping[str, ResourceStep]
    segments: tuple[Segment, ...]
    ctx: StepContext = field(default_factory=StepContext)

    def __post_init__(self) -> None:
        self.resources = {
            key: replace(step, segments=self.segments) if step.segments is None else step
            for key, step in self.resources.items()
        }
        _check(self.segments)
        for step in self.resources.values():
            if step.rows is not self.segments:
                _check(step.rows)


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


@dataclass(frozen=True)
class PublishedInfo:
    """What a resource tells other nodes about one request: the base of each resource's own record.

    A value that can be sent to another process, and that does not change when the request goes on: a
    growing list is copied into it.
    """


class CachedPrefix(NamedTuple):
    """How much of a walk need not be computed, because it is stored already.

    Attributes:
        length: tokens from the walk's beginning.
        whole: these are all of the walk's tokens and its last one need not be computed: it need not run.
    """

    length: int
    whole: bool = False


@dataclass(frozen=True)
class NodeResourceSpec:
    """What a deployment declares about a resource before anything is built.

    Attributes:
        kind: what is to be built.
        depends_on: keys of the resources whose plan it reads.
        settings: what its maker is given, by name.
    """

    kind: str
    depends_on: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


def _check(segments: tuple[Segment, ...]) -> None:
    """Once for all resources: what one of them would count wrong, another would not notice."""
    if len({(rid, label) for rid, _, label in segments}) < len(segments):
        raise EngineError(f"a step has one segment for a stream at most, got {list(segments)}")
    if any(span < 0 for _, span, _ in segments):
        raise EngineError(f"a segment adds a span of 0 or more tokens, got {list(segments)}")
