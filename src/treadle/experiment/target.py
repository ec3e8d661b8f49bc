"""How a command finds an experiment: `load_target` imports what the user named, and nothing else.

    path/to/file.py         what its function `build` returns, else every step at its top level
    path/to/file.py:attr    this attribute: a step, several of them, or a function that returns them
    package.module[:attr]   the same for a module, found as by `python -m`

The module of a file is called by its stem, as `import` would call it from beside the file, so its
steps have the same identities however they are started.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar

from treadle.errors import ArgumentError, UnknownNameError, nearest
from treadle.execution import Handle, Step, StepSpec

AnyStep: TypeAlias = Handle[Any] | StepSpec
T = TypeVar("T")
ENTRY: Final = "build"
_TARGET = re.compile(r"(?P<file>.+\.py|[^:]*/[^:]*)(:(?P<attr>\w+))?|(?P<module>[\w.-]+)(:(?P<name>\w+))?")
_STEPS = "a step (a handle or a StepSpec), an iterable or a mapping of steps"


def is_step(value: object) -> TypeGuard[AnyStep]:
    """Whether a runner can run it."""
    return isinstance(value, Handle | StepSpec)


def load_target(target: str) -> Iterable[AnyStep]:
    """The steps that `target` means, paths being relative to the current folder; see the module.

    A list; or, where the experiment gives an iterator, an iterator, which is not listed here. The
    folder of the file, or the current one for a module, comes first in `sys.path`, and stays there
    as under `python FILE`, since steps may import when they run.

    Raises:
        ArgumentError: no such file or module, no steps in it, or what it raises, as the cause.
        UnknownNameError: the module has no such attribute.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise ArgumentError(f"experiment: expected FILE.py, FILE.py:NAME or MODULE[:NAME], got {target!r}")
    file, name = match["file"], match["module"]
    module = _import_file(Path(file)) if file else _import_module(name)
    place, attr = file or name, match["attr"] or match["name"]
    return _attribute(place, module, attr) if attr else _default(place, module)


def _import_file(path: Path) -> ModuleType:
    file, name = path.absolute(), path.stem
    if not file.is_file():
        guess = nearest(file.name, sorted(each.name for each in file.parent.glob("*.py")))
        hint = f"; did you mean {path.with_name(guess)}?" if guess else f" (current folder: {Path.cwd()})"
        raise ArgumentError(f"experiment: expected a Python file, found none at {path}{hint}")
    known = sys.modules.get(name)
    if known is not None and _is_from(known, file):
        return known
    if known is not None or name in sys.stdlib_module_names:
        owner = getattr(known, "__file__", None) or "the standard library"
        raise ArgumentError(
            f"experiment {path}: the module name {name!r} is taken by {owner}; rename the file"
        )
    _prepend(file.parent)
    return _guarded(str(path), file, lambda: _execute(name, file))


def _is_from(module: ModuleType, file: Path) -> bool:
    place = getattr(module, "__file__", None)
    return place is not None and Path(place).exists() and Path(place).samefile(file)


def _execute(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"not a Python file: {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_module(name: str) -> ModuleType:
    _prepend(Path.cwd())
    found = _guarded(name, None, lambda: _find(name))
    if found is None:
        raise ArgumentError(f"experiment: no module {name!r} on the path, which begins with {Path.cwd()}")
    return _guarded(name, Path(found.origin) if found.origin else None, lambda: importlib.import_module(name))


def _find(name: str) -> ModuleSpec | None:
    """Where the module is; the packages above it are imported for that."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _prepend(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # what was written just now is found too


def _default(place: str, module: ModuleType) -> Iterable[AnyStep]:
    entry = getattr(module, ENTRY, None)
    if callable(entry) and not isinstance(entry, Step):  # a step may well be called so
        return _called(f"{place}: {ENTRY}", entry, module)
    steps = list(dict.fromkeys(value for value in vars(module).values() if is_step(value)))
    if not steps:
        raise ArgumentError(
            f"experiment {place}: expected a function {ENTRY}() that returns {_STEPS}, or steps at the top "
            f"level, found neither; to name another: {place}:NAME"
        )
    return steps


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
    return _listed(f"{where}()", _guarded(where, file, function))


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


def _guarded(where: str, file: Path | None, act: Callable[[], T]) -> T:
    """What `act` gives; what it raises is the cause of an error that names the place in `file`."""
    try:
        return act()
    except (Exception, SystemExit) as error:  # SystemExit would end the command as if all were well
        raise _failed(where, file, error) from error


def _failed(where: str, file: Path | None, error: BaseException) -> ArgumentError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if file is not None and Path(frame.filename) == file] or frames
    place = f"{own[-1].filename}:{own[-1].lineno}"
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    reason = error.msg if isinstance(error, SyntaxError) else error
    return ArgumentError(f"experiment {where} failed at {place}: {type(error).__name__}: {reason}")
