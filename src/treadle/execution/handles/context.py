"""What a step may ask of the place where it runs; nothing of it is part of the identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from treadle.errors import ArgumentError, UnknownNameError


class Identified(Protocol):
    """A step, as a dependency is asked for."""

    @property
    def identity(self) -> str:
        """What it is called in the identity of its dependents."""
        ...


@dataclass(frozen=True)
class StepContext:
    """Where a step runs: the folder to fill, its name, its identity in hex, and the store.

    `runtime` has the arguments that bear no identity, `artifacts` says for each dependency, by its
    identity, how to find the place of its artifact.
    """

    output_path: str
    name: str
    fingerprint: str
    prefix: str
    runtime: Mapping[str, Any] = field(default_factory=dict, repr=False)
    artifacts: Mapping[str, Callable[[], str]] = field(default_factory=dict, repr=False)

    def runtime_arg(self, key: str) -> Any:
        """The runtime argument of this name.

        Raises:
            UnknownNameError: there is none.
        """
        if key not in self.runtime:
            raise UnknownNameError(f"runtime argument of step {self.name!r}", key, self.runtime)
        return self.runtime[key]

    def artifact_path(self, dep: Identified) -> str:
        """Where the artifact of a dependency lies.

        Raises:
            ArgumentError: the step does not say that it depends on it.
        """
        identity = getattr(dep, "identity", None)
        if not isinstance(identity, str) or identity not in self.artifacts:
            raise ArgumentError(
                f"step {self.name!r}: artifact_path: expected one of its deps "
                f"({', '.join(sorted(self.artifacts)) or 'it has none'}), got {dep!r}: add it to deps"
            )
        return self.artifacts[identity]()
