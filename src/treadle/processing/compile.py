"""From a manifest to the datasets it reads and writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from urllib.parse import quote

from treadle.errors import ManifestError
from treadle.manifest import Manifest
from treadle.processing.context import RunContext
from treadle.storage import Dataset


@dataclass(frozen=True)
class StoragePlan:
    """Where a run reads and where it writes.

    `quarantine` is None unless bad rows are to be kept, `log` unless the manifest names one.
    """

    inputs: Mapping[str, Dataset]
    outputs: Mapping[str, Dataset]
    quarantine: str | None
    log: str | None = None


def compile_step_manifest(manifest: Manifest, ctx: RunContext) -> StoragePlan:
    """The plan of a bound manifest. Touches no file.

    A relative input path counts from the working directory, a relative path of an output or of the log from
    `ctx.output_root`.

    Raises:
        ManifestError: the log is not a local file, or would be written into what the run reads or writes.
    """
    inputs = {
        name: Dataset(section.backend, section.path, columns=section.columns)
        for name, section in manifest.inputs.items()
    }
    outputs = {
        name: Dataset(section.backend, below(ctx.output_root, section.path), compression=section.compression)
        for name, section in manifest.outputs.items()
    }
    quarantine = quarantine_path(ctx) if manifest.errors.on_bad_row == "quarantine" else None
    log = manifest.metrics.log
    plan = StoragePlan(inputs, outputs, quarantine, log if log is None else below(ctx.output_root, log))
    _check_log(manifest, plan)
    return plan


def quarantine_path(ctx: RunContext) -> str:
    """Where the bad rows of a run go. Named after the step: steps may share an output root."""
    return below(ctx.output_root, f"{safe_name(ctx.step_id)}.quarantine.jsonl")


def safe_name(step_id: str) -> str:
    """The step id as a file name: no separator, no leading dot, different for different ids."""
    name = quote(step_id, safe=" ")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def _check_log(manifest: Manifest, plan: StoragePlan) -> None:
    if plan.log is None:
        return
    log = _plain(plan.log)
    written = [
        *(each.path for each in plan.outputs.values()),
        *([plan.quarantine] if plan.quarantine else []),
    ]
    inside = [path for path in written if _overlap(_plain(path), log)]
    read = [each.path for each in plan.inputs.values() if _reads(each.path, log)]
    if "://" in plan.log or inside or read:
        expected = "a local file apart from the inputs, the outputs and the quarantine"
        found = next(iter([*inside, *read]), plan.log)
        raise ManifestError(
            [manifest.problem("metrics.log", expected, f"{manifest.metrics.log!r} at {found}")]
        )


def _reads(pattern: str, log: Path) -> bool:
    """Whether an input of that path would read the log as rows."""
    path = _plain(pattern)
    return path in (log, log.parent) or fnmatchcase(str(log), str(path))


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _plain(path: str) -> Path:
    return Path(os.path.abspath(path.removeprefix("file://")))  # noqa: PTH100 - pathlib keeps the `..`


def below(root: str, path: str) -> str:
    """`path` under `root`, unless it is an absolute path or a URL."""
    if "://" in path or PurePath(path).is_absolute():
        return path
    return f"{root.rstrip('/')}/{path}"
