"""Load what users installed or named: modules that register run types and transforms.

A plugin is an entry point of the group `treadle.plugins`, or a module named in TREADLE_PLUGINS (comma
separated). Importing it registers what it has. An entry point may also name a function, which is then called
once without arguments.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import entry_points
from typing import Final

from treadle.errors import ArgumentError

GROUP: Final = "treadle.plugins"
VARIABLE: Final = "TREADLE_PLUGINS"

_loaded: set[str] = set()
# Several runs may start at once in the threads of one process.
_lock = threading.Lock()


def load_plugins(named: str | None = None) -> None:
    """Load each plugin that this process has not loaded yet: entry points by name, then the named modules.

    `named` stands for the value of TREADLE_PLUGINS where the run was started, None for that of this process.

    Raises:
        ArgumentError: a plugin that cannot be loaded, naming it and where it is listed.
    """
    with _lock:
        for origin, load in _listed(os.environ.get(VARIABLE, "") if named is None else named):
            if origin not in _loaded:
                _load(origin, load)
                _loaded.add(origin)


def _listed(named: str) -> Iterator[tuple[str, Callable[[], object]]]:
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        yield f"{point.value} (entry point {point.name!r} of {GROUP})", point.load
    for name in named.split(","):
        if module := name.strip():
            yield f"{module} (from {VARIABLE})", partial(importlib.import_module, module)


def _load(origin: str, load: Callable[[], object]) -> None:
    try:
        plugin = load()
        if callable(plugin):
            plugin()
    except (Exception, SystemExit) as error:  # SystemExit would end the process as if all were well
        raise ArgumentError(
            f"the plugin {origin} cannot be loaded: {type(error).__name__}: {error}; fix or remove it"
        ) from error
