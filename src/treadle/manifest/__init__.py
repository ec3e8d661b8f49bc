"""The manifest language: load with includes, merge params, fill placeholders, validate into a typed model.

The names are loaded when they are asked for: a worker gets a model that is filled in, and reads no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.manifest.explain import explain_manifest
    from treadle.manifest.load import (
        bind_manifest,
        load_manifest_path,
        merged_params_from_manifest,
        read_manifest,
    )
    from treadle.manifest.model import Execution, Manifest
    from treadle.manifest.schema import shipped_schema
    from treadle.manifest.starter import read_starter, starters

__all__ = [
    "Execution",
    "Manifest",
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
        "bind_manifest",
        "load_manifest_path",
        "merged_params_from_manifest",
        "read_manifest",
    ),
    "model": ("Execution", "Manifest"),
    "schema": ("shipped_schema",),
    "starter": ("read_starter", "starters"),
}
__getattr__, __dir__ = later(__name__, _MODULES)
