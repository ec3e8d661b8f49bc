"""What clients are handed: records that are checked when they are made, and refused with what to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from treadle.errors import ArgumentError
from treadle.fray.environment import PLAIN, EnvironmentConfig
from treadle.fray.resources import ResourceConfig

T = TypeVar("T")
A = TypeVar("A")

_ONE_CPU = ResourceConfig()


@dataclass(frozen=True)
class JobRequest(Generic[T]):
    """Call `fn()` somewhere; `name` is for people.

    When its worker is lost, the call is made again, up to `losses` times; what `fn` raises never leads to it.
    A `detached` job goes on to its end when whoever submitted it is gone, where there are other processes;
    else it ends with its submitter.

    Raises:
        ArgumentError: one of them is something else; says what is expected.
    """

    name: str
    fn: Callable[[], T]
    resources: ResourceConfig = _ONE_CPU
    environment: EnvironmentConfig = PLAIN
    losses: int = 0
    detached: bool = False

    def __post_init__(self) -> None:
        if not _is_right(self, self.fn) or type(self.detached) is not bool:
            raise ArgumentError(_wrong(self, fn=self.fn, detached=self.detached))


@dataclass(frozen=True)
class ActorRequest(Generic[A]):
    """Keep the object that `make()` gives somewhere, for calls of its methods.

    When its worker is lost, it is made again by `make()`, up to `losses` times.

    Raises:
        ArgumentError: one of them is something else; says what is expected.
    """

    name: str
    make: Callable[[], A]
    resources: ResourceConfig = _ONE_CPU
    environment: EnvironmentConfig = PLAIN
    losses: int = 3

    def __post_init__(self) -> None:
        if not _is_right(self, self.make):
            raise ArgumentError(_wrong(self, make=self.make))


def check_job(request: object) -> None:
    """See that it is a job request, as each `submit` does.

    Raises:
        ArgumentError: it is something else.
    """
    if not isinstance(request, JobRequest):
        raise ArgumentError(
            f'submit: expected a JobRequest, got {request!r}: write submit(JobRequest("name", fn)), '
            'or JobRequest("name", partial(fn, 3)) for fn(3)'
        )


def check_actor(request: object) -> None:
    """See that it is an actor request, as each `create_actor` does.

    Raises:
        ArgumentError: it is something else.
    """
    if not isinstance(request, ActorRequest):
        raise ArgumentError(
            f"create_actor: expected an ActorRequest, got {request!r}: write "
            'create_actor(ActorRequest("name", Counter)), or partial(Counter, 5) for Counter(5)'
        )


def _is_right(request: Any, call: object) -> bool:
    """Whether the fields that both have are what they should be; in one expression: each job is asked."""
    return (
        isinstance(request.name, str)
        and callable(call)
        and isinstance(request.resources, ResourceConfig)
        and isinstance(request.environment, EnvironmentConfig)
        and type(request.losses) is int
        and request.losses >= 0
    )


def _wrong(request: Any, **given: object) -> str:
    """Which field of the request is not what it should be, and what to write."""
    kind, (call, example) = type(request).__name__, _CALLS[type(request)]
    write = f'write {kind}("name", {call}), or {example} for arguments'
    if not isinstance(request.name, str):
        return f"{kind}: name: expected text, got {request.name!r}: {write}"
    for name, value in given.items():
        if name != "detached" and not callable(value):
            return f"{kind} {request.name!r}: {name}: expected a function, got {value!r}: {write}"
    for name, right in (("resources", ResourceConfig), ("environment", EnvironmentConfig)):
        value = getattr(request, name)
        if not isinstance(value, right):
            return f"{kind} {request.name!r}: {name}: expected {right.__name__}(...), got {value!r}: {write}"
    if type(given.get("detached", False)) is not bool:
        return f"{kind} {request.name!r}: detached: expected True or False, got {given['detached']!r}"
    return f"{kind} {request.name!r}: losses: expected a whole number of at least 0, got {request.losses!r}"


_CALLS: dict[type, tuple[str, str]] = {
    JobRequest: ("fn", "partial(fn, 3)"),
    ActorRequest: ("Counter", "partial(Counter, 5)"),
}
