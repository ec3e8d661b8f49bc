"""What tells steps of one name apart: the arguments in which they differ, as in `rate=0.1, seed=3`."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.artifacts import Json
from treadle.artifacts.drift import differences
from treadle.execution.step_spec import StepSpec

_ALIKE = 500
_DIFFERENCES = 50
_FIELDS = 3
_WIDTH = 28


def labels(steps: Mapping[str, StepSpec]) -> dict[str, str]:
    """Step id -> its label, for steps whose name is not alone among them."""
    return labels_of({key: (step.name, step.config) for key, step in steps.items()})


def labels_of(configs: Mapping[str, tuple[str, Json]]) -> dict[str, str]:
    """The same, from step id -> name and recipe (a canonical form). A name of very many steps gets none."""
    by_name: dict[str, list[str]] = {}
    for key, (name, _) in configs.items():
        by_name.setdefault(name, []).append(key)
    told: dict[str, str] = {}
    for keys in by_name.values():
        if 1 < len(keys) <= _ALIKE:
            told.update(_told_apart({key: configs[key][1] for key in keys}))
    return told


def _told_apart(recipes: Mapping[str, Json]) -> dict[str, str]:
    first = next(iter(recipes.values()))
    own: dict[str, dict[str, str]] = {key: {} for key in recipes}
    usual: dict[str, str] = {}
    for key, recipe in recipes.items():
        for change in differences(first, recipe)[:_DIFFERENCES]:
            usual[change.path] = change.old
            own[key][change.path] = change.new
    paths = _telling(usual, own)
    return {
        key: ", ".join(_field(path, own[key].get(path, usual[path])) for path in paths) for key in recipes
    }


def _telling(usual: Mapping[str, str], own: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The fields to show: plain values, and only where there are none, which steps are needed."""
    steps = {path for each in own.values() for path, value in each.items() if "@step" in value}
    return ([path for path in usual if path not in steps] or list(usual))[:_FIELDS]


def _field(path: str, value: str) -> str:
    name = path.removeprefix("arguments.").removeprefix("config.")
    return f"{name}={value if len(value) <= _WIDTH else '…' + value[1 - _WIDTH :]}"
