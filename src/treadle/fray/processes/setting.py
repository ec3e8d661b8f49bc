"""Where a worker finds itself, and what all workers of a client have in common."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import NamedTuple

from treadle.errors import ArgumentError, ClusterError
from treadle.fray.environment import EnvironmentConfig


class Setting(NamedTuple):
    """Where a worker finds itself; only workers of the same setting are interchangeable."""

    environment: EnvironmentConfig
    folder: str
    search_path: tuple[object, ...]

    @classmethod
    def here(cls, environment: EnvironmentConfig) -> Setting:
        """That of this process, but for what the environment says.

        Raises:
            ClusterError: the current folder was deleted.
        """
        try:
            return cls(environment, os.getcwd(), tuple(sys.path))  # noqa: PTH109 - asked for each job
        except FileNotFoundError as error:
            raise ClusterError(
                "the current folder of this process, in which its workers begin, was deleted: "
                "change to another one"
            ) from error


@dataclass(frozen=True)
class WorkerOptions:
    """What all workers of a client have in common."""

    client_key: str
    grace: float
    largest_result: int


def check_environment(what: str, environment: EnvironmentConfig) -> None:
    """See that workers of this machine can have that environment; `what` is what messages call it.

    Raises:
        ArgumentError: they cannot; says why.
    """
    if environment.is_plain:
        return
    if environment.pip:
        raise ArgumentError(
            f"{what}: environment: pip: only Ray installs packages, got {list(environment.pip)}: "
            "install them here, or use a client of Ray"
        )
    if environment.working_dir is not None and not os.path.isdir(environment.working_dir):  # noqa: PTH112
        raise ArgumentError(
            f"{what}: environment: working_dir: there is no folder {environment.working_dir!r}"
        )
    for each in environment.python_path:
        if not os.path.exists(each):  # noqa: PTH110
            raise ArgumentError(f"{what}: environment: python_path: there is no {each!r}")
