"""A value that holds for a block of code and for the work started in it; on a hot path it is an argument."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Generic, ParamSpec, TypeVar

from treadle.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class Ambient(Generic[T]):
    """One ambient value: `get` it, or `use` another for the length of a `with` block.

    `hint` is the sentence that tells a reader of the error how to set the value.
    """

    def __init__(self, name: str, *, hint: str = "") -> None:
        self.name: Final = name
        self._hint = hint
        self._variable: contextvars.ContextVar[T] = contextvars.ContextVar(name)

    def get(self) -> T:
        """The value of this context.

        Raises:
            UsageError: none is set.
        """
        if not self.is_set:
            raise UsageError(f"no {self.name} is set here. {self._hint}".rstrip())
        return self._variable.get()

    @property
    def is_set(self) -> bool:
        """Whether `get` would give a value."""
        return self._variable.get(None) is not None

    def use(self, value: T) -> AbstractContextManager[T]:
        """Set the value for the block, and restore the former one after it."""
        return _Use(self._variable, value)


class _Use(Generic[T]):
    """See `Ambient.use`. No generator: `contextmanager` cannot pass on an exception that is frozen."""

    def __init__(self, variable: contextvars.ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> T:
        self._token = self._variable.set(self._value)
        return self._value

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, to be called anywhere, under the context variables of whoever called `carry`.

    Pool threads do not inherit context variables. Each call runs in a copy of its own, since one
    context cannot be entered twice at once.
    """
    captured = contextvars.copy_context()

    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return captured.copy().run(function, *args, **kwargs)

    return carried
