"""The versions of a whole run: a default, and others for some steps by name."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from treadle.artifacts.version import check_version
from treadle.errors import ArgumentError
from treadle.execution.handles.handle import Handle
from treadle.execution.step_spec import StepSpec


class Versions:
    """The version of each step that has none of its own: by name in `names`, else `default`.

    A key of `names` may be a pattern with `*`, `?` and `[...]`. An exact name goes before patterns, and
    of the patterns that match, the first counts. With no default, a step that is not named is addressed
    by its content. One object is for one run: it remembers what was lowered with it.

    Raises:
        ArgumentError: something is no version.
    """

    def __init__(self, default: str | None = None, names: Mapping[str, str] | None = None) -> None:
        if default is not None:
            check_version(default, "versions: default")
        if names is not None and not isinstance(names, Mapping):
            raise ArgumentError(
                f"versions: names: expected a mapping of step names to versions, got {names!r}"
            )
        self.default = default
        self.names = dict(names or {})
        for name, version in self.names.items():
            check_version(version, f"versions: names[{name!r}]")
        self._used: set[str] = set()
        self._lowered: dict[str, dict[Handle[Any], StepSpec]] = {}

    @property
    def unused(self) -> tuple[str, ...]:
        """The keys of `names` that gave no step its version so far, sorted."""
        return tuple(sorted(self.names.keys() - self._used))

    def find(self, name: str) -> str | None:
        """The version of the step `name`, or None: it is addressed by its content."""
        matching = name if name in self.names else next(filter(_pattern_of(name), self.names), None)
        if matching is None:
            return self.default
        self._used.add(matching)
        return self.names[matching]

    def lowered(self, store: str) -> dict[Handle[Any], StepSpec]:
        """What was lowered with these versions for that store; `lower` adds to it."""
        return self._lowered.setdefault(store, {})

    def __repr__(self) -> str:
        return f"Versions({self.default!r}, {self.names!r})"


def _pattern_of(name: str) -> Any:
    return lambda pattern: fnmatchcase(name, pattern)
