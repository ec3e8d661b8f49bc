"""Import what the manifest names as `package.module:function`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from treadle.errors import ManifestError, nearest
from treadle.manifest import Manifest


def import_entry(manifest: Manifest, entry: str, field: str = "run.entry") -> Callable[..., object]:
    """The callable that `entry` names, `package.module:function` or `package.module.function`.

    `field` is where it stands in the manifest.

    Raises:
        ManifestError: `entry` has another form, its module cannot be imported, or has no such callable.
    """
    module_name, _, name = entry.partition(":") if ":" in entry else entry.rpartition(".")
    if not (module_name and name.isidentifier()):
        raise ManifestError([manifest.problem(field, "package.module:function", repr(entry))])
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module can raise anything while it is imported
        found = f"{entry!r}: {type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            found += " (for a module in the working folder set PYTHONPATH=.)"
        raise ManifestError([manifest.problem(field, "a module that can be imported", found)]) from error
    found_there: object = getattr(module, name, None)
    if not callable(found_there):
        known = sorted(each for each in vars(module) if callable(getattr(module, each)))
        problem = manifest.problem(field, f"a callable of {module_name}", repr(name), nearest(name, known))
        raise ManifestError([problem])
    return found_there
