"""The script that runs as `__main__`, known by the same name in all processes that work for it.

What it defines is kept under the name that it would be imported by. In another process `__main__` is
something else, so that is told what the script is called, and gets the dataclasses of its values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pickle
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import cloudpickle

_COMMAND = 1_000
_LARGEST = 1_000_000
"""Bytes of one class: with its methods go the global variables that they use."""


class Script(NamedTuple):
    """Its name, the command that runs it, and its dataclasses by qualified name, pickled by value."""

    name: str
    command: str
    classes: Mapping[str, bytes]


def module_name(name: str) -> str:
    """The name of a module; that of a script run as `__main__` as if it were imported."""
    main = sys.modules.get("__main__")
    if name != "__main__" or main is None:
        return name
    if _received is not None:
        return _received.name
    if (spec := getattr(main, "__spec__", None)) is not None:
        return str(spec.name)
    return Path(getattr(main, "__file__", None) or "__main__").stem


def command_line() -> str:
    """The command that began what this process runs or works for."""
    return shlex.join(sys.argv)[:_COMMAND] if _received is None else _received.command


def script_here() -> Script:
    """The script that this process runs or works for."""
    if _received is not None:
        return _received
    kinds = _dataclasses("", vars(sys.modules["__main__"]))
    pickles = {kind.__qualname__: _pickled(kind) for kind in kinds}
    classes = {name: data for name, data in pickles.items() if data is not None}
    return Script(module_name("__main__"), command_line(), classes)


def work_for(script: Script) -> None:
    """From now on `__main__` means that script in this process, unless this is the one that runs it."""
    global _received, _classes
    if script != script_here():
        _classes = {name: kind for name, data in script.classes.items() if (kind := _loaded(name, data))}
        _received = script


def script_class(qualname: str) -> Any:
    """The dataclass of that name of the script that this process runs or works for.

    Raises:
        AttributeError: it has none.
    """
    if qualname in _classes:
        return _classes[qualname]
    if _received is not None:
        raise AttributeError(
            f"the script {_received.name} sent no dataclass {qualname}: it has none, or one that cannot be "
            "pickled or is too large; define it in a module"
        )
    return functools.reduce(getattr, qualname.split("."), sys.modules["__main__"])


def _dataclasses(outer: str, names: Mapping[str, object]) -> Iterator[type]:
    for name, each in tuple(names.items()):
        if isinstance(each, type) and (each.__module__, each.__qualname__) == ("__main__", f"{outer}{name}"):
            if dataclasses.is_dataclass(each):
                yield each
            yield from _dataclasses(f"{outer}{name}.", vars(each))


def _pickled(kind: type) -> bytes | None:
    """None for one that cannot be sent, or would weigh on every step: who reads a value of it is told."""
    if kind not in _pickles:
        data: bytes | None = None
        with contextlib.suppress(Exception):
            data = cloudpickle.dumps(kind)
        _pickles[kind] = data if data is not None and len(data) <= _LARGEST else None
    return _pickles[kind]


def _loaded(qualname: str, data: bytes) -> type | None:
    try:
        kind: type = pickle.loads(data)  # noqa: S301 - from the run that this process works for
    except Exception:  # noqa: BLE001 - see `_pickled`
        return None
    kind.__qualname__ = qualname  # which pickling has cut down to the name
    return kind


_classes: Mapping[str, type] = {}
_pickles: WeakKeyDictionary[type, bytes | None] = WeakKeyDictionary()
_received: Script | None = None
