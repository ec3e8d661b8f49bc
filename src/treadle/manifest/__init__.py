"""The manifest language: load with includes, merge params, fill placeholders, validate into a typed model."""

from treadle.manifest.explain import explain as explain_manifest
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
