"""A function that says what its job needs, wherever it becomes a step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from treadle.errors import ArgumentError
from treadle.fray import ResourceConfig

R_co = TypeVar("R_co", covariant=True)


class Remote(Generic[R_co]):
    """A function with the `resources` of its job. A call of it is a call of the function, here."""

    def __init__(self, function: Callable[..., R_co], resources: ResourceConfig) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.resources = resources

    def __call__(self, /, *args: Any, **kwargs: Any) -> R_co:
        """What the function returns."""
        return self.function(*args, **kwargs)


def remote(function: Callable[..., R_co], /, *, resources: ResourceConfig) -> Remote[R_co]:
    """The function, marked: a step made of it asks for `resources`, unless the step says otherwise.

    Raises:
        ArgumentError: it is no function, or these are no resources.
    """
    if not callable(function):
        raise ArgumentError(f"remote: expected a function, got {function!r}")
    if not isinstance(resources, ResourceConfig):
        raise ArgumentError(f"remote: resources: expected a ResourceConfig, got {resources!r}")
    return Remote(function, resources)
