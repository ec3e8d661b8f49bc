"""Manifests in DRTML 4: load with includes, merge params, fill placeholders, validate into a typed model."""

from treadle.manifest.load import (
    Document,
    bind_manifest,
    load_manifest_path,
    merged_params_from_manifest,
    read_manifest,
)
from treadle.manifest.model import Manifest
from treadle.manifest.params import Params

__all__ = [
    "Document",
    "Manifest",
    "Params",
    "bind_manifest",
    "load_manifest_path",
    "merged_params_from_manifest",
    "read_manifest",
]
