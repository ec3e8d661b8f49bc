"""The manifest language: load with includes, merge params, fill placeholders, validate into a typed model.

The names are loaded when they are asked for: a worker gets a model that is filled in, and reads no file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.manifest.explain import explain_manifest
    from treadle.manifest.load import (
        Document,
        bind_manifest,
        load_manifest_path,
        merged_params_from_manifest,
        read_manifest,
    )
    from treadle.manifest.model import Execution, Manifest
    from treadle.manifest.params import Params
    from treadle.manifest.schema import shipped_schema
    from treadle.manifest.starter import read_starter, starters

__all__ = [
    "Document",
    "Execution",
    "Manifest",
    "Params",
    "bind_manifest",
    "explain_manifest",
    "load_manifest_path",
    "merged_params_from_manifest",
    "read_manifest",
    "read_starter",
    "shipped_schema",
    "starters",
]

_MODULES = {
    "explain": ("explain_manifest",),
    "load": (
        "Document",
        "bind_manifest",
        "load_manifest_path",
        "merged_params_from_manifest",
        "read_manifest",
    ),
    "model": ("Execution", "Manifest"),
    "params": ("Params",),
    "schema": ("shipped_schema",),
    "starter": ("read_starter", "starters"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
