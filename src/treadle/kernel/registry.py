"""Things by name. A name is given once, and an unknown one lists the known."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from treadle.errors import ArgumentError, UnknownNameError

T = TypeVar("T")


@dataclass(frozen=True)
class _Deferred:
    """What the attribute of a module is, once that is loaded."""

    module: str
    attribute: str

    def load(self) -> Any:
        return getattr(importlib.import_module(self.module), self.attribute)


class Registry(Generic[T]):
    """Names to things of one `kind`, such as `"run type"`: the word that messages use."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, T | _Deferred] = {}

    def register(self, name: str, thing: T) -> T:
        """Give `thing` the name; the same thing twice is no harm, so a module may load again.

        Raises:
            ArgumentError: the name is empty or belongs to something else.
        """
        if not name:
            raise ArgumentError(f"a {self.kind} needs a name that is not empty")
        if self._things.setdefault(name, thing) is not thing and self.get(name) is not thing:
            raise ArgumentError(
                f"the {self.kind} {name!r} is already registered as {self._things[name]!r}; "
                f"{thing!r} needs another name"
            )
        return thing

    def defer(self, name: str, module: str, attribute: str) -> None:
        """Give the name to an attribute of a module, which is loaded when the thing is first asked for.

        Raises:
            ArgumentError: the name is empty or belongs to something else.
        """
        thing: Any = _Deferred(module, attribute)
        self.register(name, thing)

    def get(self, name: str) -> T:
        """The thing of that name.

        Raises:
            UnknownNameError: nothing has it; the message lists what there is.
        """
        if name not in self._things:
            raise UnknownNameError(self.kind, name, self._things)
        thing = self._things[name]
        if isinstance(thing, _Deferred):
            thing = self._things[name] = thing.load()
        return thing

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._things))

    def __contains__(self, name: object) -> bool:
        return name in self._things
