"""Names that a package offers and loads when they are asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping


def later(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for `package`, each of whose `modules` has some of its names.

    The first of them loads the module of a name, once, and raises AttributeError for any other name.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return load, names
