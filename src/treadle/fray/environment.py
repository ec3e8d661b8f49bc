"""What a job wants to find where it runs, beside resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class EnvironmentConfig:
    """Environment variables, a working folder, and packages for pip to install.

    `python_path` are folders that come first in the module search path. A backend that cannot provide one
    of these refuses the job: threads share one environment, and only Ray installs packages.

    Raises:
        ArgumentError: a value is not text.
    """

    env_vars: Mapping[str, str] = field(default_factory=dict, hash=False)
    working_dir: str | None = None
    python_path: Sequence[str] = ()
    pip: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_mapping(self.env_vars)
        object.__setattr__(self, "env_vars", dict(self.env_vars))
        for name in ("python_path", "pip"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        if self.working_dir is not None and not isinstance(self.working_dir, str):
            raise ArgumentError(
                f"environment: working_dir: expected a path as text, got {self.working_dir!r}"
            )

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked for."""
        return self is PLAIN or self == PLAIN


def _check_mapping(env_vars: object) -> None:
    if not isinstance(env_vars, Mapping):
        raise ArgumentError(f"environment: env_vars: expected a mapping of names to texts, got {env_vars!r}")
    for name, value in env_vars.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or "=" in name:
            raise ArgumentError(f"environment: env_vars: expected a name and a text, got {name!r}: {value!r}")


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentError(f"environment: {name}: expected several texts, got {value!r}")
    for each in value:
        if not isinstance(each, str) or not each:
            raise ArgumentError(f"environment: {name}: expected texts, got {each!r}")
    return tuple(value)


PLAIN = EnvironmentConfig()
