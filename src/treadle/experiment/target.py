"""How a command finds an experiment: `load_target` imports what the user named, and nothing else.

    path/to/file.py         what its function `build` returns, else every step at its top level
                            and in the lists, tuples and dicts there
    path/to/file.py:attr    this attribute: a step, several of them, or a function that returns them
    package.module[:attr]   the same for a module, found as by `python -m`

An error names the place in the user's file that is wrong.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final, TypeGuard

from treadle.errors import ArgumentError, UnknownNameError
from treadle.execution import Handle, Step, StepSpec
from treadle.experiment.modules import guarded, import_file, import_module
from treadle.experiment.run import AnyStep

ENTRY: Final = "build"
_TARGET = re.compile(r"(?P<file>.+\.py|[^:]*/[^:]*)(:(?P<attr>\w+))?|(?P<module>[\w.-]+)(:(?P<name>\w+))?")
_STEPS = "a step (a handle or a StepSpec), an iterable or a mapping of steps"


def is_step(value: object) -> TypeGuard[AnyStep]:
    """Whether a runner can run it."""
    return isinstance(value, Handle | StepSpec)


def load_target(target: str) -> Iterable[AnyStep]:
    """The steps that `target` means, paths being relative to the current folder; see the module.

    A list; or, where the experiment gives an iterator, an iterator, which is not listed here.

    Raises:
        ArgumentError: no such file or module, no steps in it, or what it raises, as the cause.
        UnknownNameError: the module has no such attribute.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise ArgumentError(f"experiment: expected FILE.py, FILE.py:NAME or MODULE[:NAME], got {target!r}")
    file, name = match["file"], match["module"]
    module = import_file(Path(file)) if file else import_module(name)
    place, attr = file or name, match["attr"] or match["name"]
    return _attribute(place, module, attr) if attr else _default(place, module)


def _default(place: str, module: ModuleType) -> Iterable[AnyStep]:
    entry = getattr(module, ENTRY, None)
    if callable(entry) and not isinstance(entry, Step):  # a step may well be called so
        return _called(f"{place}: {ENTRY}", entry, module)
    steps = list(dict.fromkeys(step for value in vars(module).values() for step in _steps_in(value)))
    if not steps:
        raise ArgumentError(
            f"experiment {place}: expected a function {ENTRY}() that returns {_STEPS}, or steps at the top "
            f"level, found neither; to name another: {place}:NAME"
        )
    return steps


def _steps_in(value: object) -> Iterator[AnyStep]:
    """A step, or those in a list, a tuple or a dict of them."""
    if is_step(value):
        yield value
    elif isinstance(value, list | tuple):
        yield from filter(is_step, value)
    elif isinstance(value, dict):
        yield from filter(is_step, value.values())


def _attribute(place: str, module: ModuleType, attr: str) -> Iterable[AnyStep]:
    if attr not in vars(module):
        raise UnknownNameError(f"name in {place}", attr, _candidates(module))
    value = vars(module)[attr]
    return _called(f"{place}:{attr}", value, module) if callable(value) else _listed(f"{place}:{attr}", value)


def _candidates(module: ModuleType) -> list[str]:
    """The names that may mean steps; what the module has imported is left out."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (is_step(value) or isinstance(value, list | tuple | dict) or _is_own(value, module))
    ]


def _is_own(value: object, module: ModuleType) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _called(where: str, function: Callable[[], object], module: ModuleType) -> Iterable[AnyStep]:
    needed = [each.name for each in _parameters(function) if each.default is each.empty and _is_single(each)]
    if needed:
        raise ArgumentError(
            f"experiment {where}: expected a function that can be called without arguments, "
            f"got one that needs {', '.join(needed)}"
        )
    file = Path(module.__file__) if module.__file__ else None
    return _listed(f"{where}()", guarded(where, file, function))


def _parameters(function: Callable[[], object]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _is_single(parameter: inspect.Parameter) -> bool:
    return parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _listed(where: str, value: object) -> Iterable[AnyStep]:
    if is_step(value):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ArgumentError(f"experiment {where}: expected {_STEPS}, got {value!r}")
    checked = _checked(where, value)
    if isinstance(value, Iterator):
        return checked
    if not (steps := list(checked)):
        raise ArgumentError(f"experiment {where}: expected {_STEPS}, got none at all: {value!r}")
    return steps


def _checked(where: str, values: Iterable[object]) -> Iterator[AnyStep]:
    for place, value in enumerate(values):
        if not is_step(value):
            raise ArgumentError(
                f"experiment {where}[{place}]: expected a handle or a StepSpec, got {value!r}"
            )
        yield value
