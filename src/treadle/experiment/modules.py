"""Imports the module of an experiment, by its file or by its name.

The module of a file is called by its stem, as `import` would call it from beside the file, so its steps have
the same identities however they are started. What its code raises becomes an error that names the line.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from treadle.errors import ArgumentError, UsageError, nearest

T = TypeVar("T")

_loading: ContextVar[str] = ContextVar("the experiment that is being loaded", default="")


def import_file(path: Path) -> ModuleType:
    """The module in that file.

    Its folder comes first in `sys.path`, and stays there as under `python FILE`, since steps may import when
    they run.

    Raises:
        ArgumentError: there is no such file, its name is taken, or its code raises, which is the cause.
    """
    # Without `..`, so that it is the same experiment from every folder; a link keeps its own name.
    file, name = path.parent.resolve() / path.name, path.stem
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
    with _while_loading(str(path)):
        return guarded(str(path), file, lambda: _execute(name, file))


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


def import_module(name: str) -> ModuleType:
    """The module of that name, for which the current folder comes first in `sys.path`.

    Raises:
        ArgumentError: there is no such module, or its code raises, which is the cause.
    """
    _prepend(Path.cwd())
    found = guarded(name, None, lambda: _find(name))
    if found is None:
        raise ArgumentError(f"experiment: no module {name!r} on the path, which begins with {Path.cwd()}")
    file = Path(found.origin) if found.origin else None
    with _while_loading(name):
        return guarded(name, file, lambda: importlib.import_module(name))


def check_not_loading() -> None:
    """See that no experiment is being loaded: even `treadle plan` would run what is run in there.

    Raises:
        UsageError: one is.
    """
    if target := _loading.get():
        raise UsageError(
            f"{target} calls run() while it is loaded; put that under `if __name__ == '__main__':`"
        )


@contextmanager
def _while_loading(target: str) -> Iterator[None]:
    token = _loading.set(target)
    try:
        yield
    finally:
        _loading.reset(token)


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


def guarded(where: str, file: Path | None, act: Callable[[], T]) -> T:
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
    if type(error) is UsageError:  # see `check_not_loading`
        return ArgumentError(f"{error} ({place})")
    reason = error.msg if isinstance(error, SyntaxError) else error
    return ArgumentError(f"experiment {where} failed at {place}: {type(error).__name__}: {reason}")
