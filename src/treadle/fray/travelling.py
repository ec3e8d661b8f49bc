"""Ambient values that go with a job to wherever it runs.

A context cannot be sent to another process. These values are sent by name, one by one:

    tenant: Travelling[str] = Travelling("tenant")

    with tenant.use("blue"):
        client.submit(JobRequest("ask", ask))      # in ask(), tenant.get() is "blue", on every backend

On threads every context variable is that of the submitter; in other processes only these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias, TypeVar

from treadle.kernel import Ambient

T = TypeVar("T")

Luggage: TypeAlias = "Sequence[tuple[Travelling[Any], Any]]"
"""Values on their way, each with the ambient that it is the value of."""


class Travelling(Ambient[T]):
    """An ambient value that is sent with jobs. Its name is what it is known by in another process.

    `with ambient.use(value):` sets it for the block, `get()` gives it, `is_set` tells whether there is one.
    """

    def __init__(self, name: str, *, hint: str = "") -> None:
        super().__init__(name, hint=hint)
        self._given_hint = hint
        known = _BY_NAME.get(name)
        if known is not None:  # a value of it came before the module that defines it
            self._variable = known._variable
        _BY_NAME[name] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name, self._given_hint)


_BY_NAME: dict[str, Travelling[Any]] = {}


def _named(name: str, hint: str) -> Travelling[Any]:
    return _BY_NAME.get(name) or Travelling(name, hint=hint)


def luggage() -> Luggage:
    """The travelling values that are set here and now."""
    return [(each, each.get()) for each in tuple(_BY_NAME.values()) if each.is_set]


def unpacked(values: Luggage) -> ExitStack:
    """A block in which the values are set, from now on."""
    with ExitStack() as stack:
        for ambient, value in values:
            stack.enter_context(ambient.use(value))
        return stack.pop_all()
