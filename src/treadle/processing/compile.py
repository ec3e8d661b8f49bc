"""From a manifest to the datasets it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from treadle.manifest import Manifest
from treadle.processing.context import RunContext
from treadle.storage import Dataset

QUARANTINE = "quarantine.jsonl"


@dataclass(frozen=True)
class StoragePlan:
    """Where a run reads and where it writes. `quarantine` is None unless bad rows are to be kept."""

    inputs: Mapping[str, Dataset]
    outputs: Mapping[str, Dataset]
    quarantine: str | None


def compile_step_manifest(manifest: Manifest, ctx: RunContext) -> StoragePlan:
    """The plan of a bound manifest. Touches no file.

    A relative input path counts from the working directory, a relative output path from `ctx.output_root`.
    """
    inputs = {
        name: Dataset(section.backend, section.path, columns=section.columns)
        for name, section in manifest.inputs.items()
    }
    outputs = {
        name: Dataset(section.backend, below(ctx.output_root, section.path), compression=section.compression)
        for name, section in manifest.outputs.items()
    }
    keeps_bad_rows = manifest.errors.on_bad_row == "quarantine"
    return StoragePlan(inputs, outputs, below(ctx.output_root, QUARANTINE) if keeps_bad_rows else None)


def below(root: str, path: str) -> str:
    """`path` under `root`, unless it stands for itself: an absolute path or a URL."""
    if "://" in path or PurePath(path).is_absolute():
        return path
    return f"{root.rstrip('/')}/{path}"
