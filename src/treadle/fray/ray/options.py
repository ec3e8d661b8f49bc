"""What a request asks for, in the words of Ray."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treadle.errors import ArgumentError
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.resources import ResourceConfig

_OWN_WORDS = ("CPU", "GPU", "memory", "object_store_memory")


def ray_resources(config: ResourceConfig) -> dict[str, Any]:
    """Options of a task; a tag is what Ray calls a custom resource."""
    options: dict[str, Any] = {"num_cpus": config.cpu}
    if config.gpu:
        options["num_gpus"] = config.gpu
    if config.memory:
        options["memory"] = config.memory
    if tags := {tag: amount for tag, amount in config.tags.items() if amount}:
        options["resources"] = tags
    return options


def found_resources(total: Mapping[str, float]) -> ResourceConfig:
    """What Ray says that a cluster has."""
    tags = {name: amount for name, amount in total.items() if name not in _OWN_WORDS}
    return ResourceConfig(
        cpu=_plain(total.get("CPU", 0)),
        memory=int(total.get("memory", 0)),
        gpu=_plain(total.get("GPU", 0)),
        tags={
            name: _plain(amount)
            for name, amount in tags.items()
            if not name.startswith(("node:", "accelerator_type:"))
        },
    )


def runtime_env(what: str, environment: EnvironmentConfig, *, here: bool) -> dict[str, Any]:
    """The runtime environment; `here` says that all workers are on this machine, which has all the folders.

    Raises:
        ArgumentError: a folder is not there.
    """
    env: dict[str, Any] = {}
    variables = dict(environment.env_vars)
    if environment.python_path:
        rest = variables.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        variables["PYTHONPATH"] = os.pathsep.join([*environment.python_path, *filter(None, [rest])])
    if variables:
        env["env_vars"] = variables
    if environment.pip:
        env["pip"] = list(environment.pip)
    if environment.working_dir is not None and not here:
        env["working_dir"] = environment.working_dir
    _check_folders(what, environment, here=here)
    return env


def _check_folders(what: str, environment: EnvironmentConfig, *, here: bool) -> None:
    folder = environment.working_dir
    if folder is not None and (here or "://" not in folder) and not Path(folder).is_dir():
        raise ArgumentError(
            f"{what}: environment: working_dir: there is no folder {folder!r} on this machine"
        )


def _plain(amount: float) -> float:
    return int(amount) if amount == int(amount) else amount
