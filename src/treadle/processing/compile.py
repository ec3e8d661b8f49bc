"""From a manifest to the datasets it reads, the outputs it writes, and what it keeps beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from urllib.parse import quote

from treadle.errors import ArgumentError, ManifestError, Problem, nearest
from treadle.manifest import Manifest
from treadle.processing.context import RunContext
from treadle.storage import Dataset, OutputSpec
from treadle.storage.formats.backends import check_options, known_formats


@dataclass(frozen=True)
class StoragePlan:
    """Where a run reads and where it writes.

    `quarantine` is None unless bad rows are to be kept, `log` and `trace` unless the manifest names one,
    `checkpoint`, a folder, unless finished units are to be kept. `account` is the file of the closing
    account.
    """

    inputs: Mapping[str, Dataset]
    outputs: Mapping[str, OutputSpec]
    quarantine: str | None
    log: str | None = None
    trace: str | None = None
    checkpoint: str | None = None
    account: str = ""


def compile_step_manifest(manifest: Manifest, ctx: RunContext) -> StoragePlan:
    """The plan of a bound manifest. Touches no file.

    A relative input path counts from the working directory, a relative path of an output, of the log or of
    the trace from `ctx.output_root`.

    Raises:
        ManifestError: an unknown format; a place that the workers cannot reach; the checkpoint is not on this
            machine; the log or the trace is not a local file, or would be written into what the run reads or
            writes. All problems at once.
    """
    root = ctx.output_root
    plan = StoragePlan(
        _inputs(manifest),
        _outputs(manifest, root),
        quarantine_path(ctx) if manifest.errors.on_bad_row == "quarantine" else None,
        log=_below(root, manifest.metrics.log),
        trace=_below(root, manifest.metrics.trace),
        checkpoint=None if manifest.checkpoint is None else checkpoint_path(ctx, manifest.checkpoint.path),
        account=account_path(ctx),
    )
    problems = [
        *_unknown_formats(manifest),
        *_wrong_options(manifest),
        *_unreachable(manifest, plan),
        *_misplaced(manifest, plan),
        *_far_checkpoint(manifest, plan),
    ]
    if problems:
        raise ManifestError(problems)
    return plan


def quarantine_path(ctx: RunContext) -> str:
    """Where the bad rows of a run go. Named after the step: steps may share an output root."""
    return below(ctx.output_root, f"{safe_name(ctx.step_id)}.quarantine.jsonl")


def account_path(ctx: RunContext) -> str:
    """Where the closing account of a run goes."""
    return below(ctx.output_root, f"{safe_name(ctx.step_id)}.account.json")


def checkpoint_path(ctx: RunContext, folder: str | None = None) -> str:
    """The hidden folder where finished units are kept until the run has committed; in `folder`, if given."""
    root = ctx.output_root if folder is None else below(ctx.output_root, folder)
    return below(root, f".{safe_name(ctx.step_id)}.checkpoint")


def scratch_specs(names: tuple[str, ...], ctx: RunContext) -> Mapping[str, OutputSpec]:
    """The outputs that phases of a run hand to each other; they never appear."""
    stem = below(ctx.output_root, f"{safe_name(ctx.step_id)}.scratch")
    return {name: OutputSpec("arrow", f"{stem}-{name}") for name in names}


def safe_name(step_id: str) -> str:
    """The step id as a file name: no separator, no leading dot, different for different ids."""
    name = quote(step_id, safe=" ")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def below(root: str, path: str) -> str:
    """`path` under `root`, unless it is an absolute path or a URL."""
    if "://" in path or PurePath(path).is_absolute():
        return path
    return f"{root.rstrip('/')}/{path}"


def _below(root: str, path: str | None) -> str | None:
    return None if path is None else below(root, path)


def _inputs(manifest: Manifest) -> dict[str, Dataset]:
    return {
        name: Dataset(
            each.backend,
            each.path,
            columns=each.columns,
            types=each.types,
            missing=each.missing,
            split_bytes=each.split_bytes,
            options=each.options,
        )
        for name, each in manifest.inputs.items()
    }


def _outputs(manifest: Manifest, root: str) -> dict[str, OutputSpec]:
    return {
        name: OutputSpec(
            each.backend,
            below(root, each.path),
            compression=each.compression,
            mode=each.mode,
            lanes=each.lanes,
            on_type_change=each.on_type_change,
            options=each.options,
        )
        for name, each in manifest.outputs.items()
    }


def _unknown_formats(manifest: Manifest) -> Iterator[Problem]:
    read, written = known_formats(), known_formats(writing=True)
    for field, backend, known in (
        *((f"inputs.{name}.backend", each.backend, read) for name, each in manifest.inputs.items()),
        *((f"outputs.{name}.backend", each.backend, written) for name, each in manifest.outputs.items()),
    ):
        if backend not in known:
            expected = f"one of {', '.join(known)}"
            yield manifest.problem(field, expected, repr(backend), nearest(backend, known))


def _wrong_options(manifest: Manifest) -> Iterator[Problem]:
    sections = [
        *((f"inputs.{name}", each.backend, each.options, True) for name, each in manifest.inputs.items()),
        *((f"outputs.{name}", each.backend, each.options, False) for name, each in manifest.outputs.items()),
    ]
    for field, backend, options, reading in sections:
        if backend not in known_formats(writing=not reading):
            continue
        try:
            check_options(backend, options, reading=reading)
        except ArgumentError as error:
            yield manifest.problem(f"{field}.options", f"options of the format {backend}", str(error))


def _unreachable(manifest: Manifest, plan: StoragePlan) -> Iterator[Problem]:
    """What lies in the memory of this process, when workers have to read or write it."""
    if manifest.parallelism.backend == "inprocess":
        return
    fields = {
        **{f"inputs.{name}.path": each.path for name, each in plan.inputs.items()},
        **{f"outputs.{name}.path": each.path for name, each in plan.outputs.items()},
    }
    for field, path in fields.items():
        if path.startswith("memory:"):
            expected = (
                f"a place that workers reach, since parallelism.backend is {manifest.parallelism.backend}"
            )
            yield manifest.problem(field, expected, repr(path))


def _misplaced(manifest: Manifest, plan: StoragePlan) -> Iterator[Problem]:
    """A log or a trace that is not a file of its own."""
    for field, written, path in (
        ("metrics.log", manifest.metrics.log, plan.log),
        ("metrics.trace", manifest.metrics.trace, plan.trace),
    ):
        if path is not None and (clash := _clash(plan, path)) is not None:
            expected = "a local file apart from the inputs, the outputs and the quarantine"
            yield manifest.problem(field, expected, f"{written!r} at {clash}")


def _far_checkpoint(manifest: Manifest, plan: StoragePlan) -> Iterator[Problem]:
    """A checkpoint that is not on this machine, where a run has to lock it."""
    if "://" in (plan.checkpoint or "").removeprefix("file://"):
        expected = "a folder of this machine, as an absolute path, where the output folder of the run is not"
        yield manifest.problem("checkpoint.path", expected, repr(plan.checkpoint))


def _clash(plan: StoragePlan, path: str) -> str | None:
    """What of the plan is in the way of a file at `path`, or the path itself when it is not local."""
    kept = [each for each in (plan.quarantine, plan.checkpoint, plan.account) if each]
    written = [*(each.path for each in plan.outputs.values()), *kept]
    local = _plain(path)
    inside = [each for each in written if _overlap(_plain(each), local)]
    read = [each.path for each in plan.inputs.values() if _reads(each.path, local)]
    return next(iter([*inside, *read]), path if "://" in path else None)


def _reads(pattern: str, log: Path) -> bool:
    """Whether an input of that path would read the log as rows."""
    path = _plain(pattern)
    return path in (log, log.parent) or fnmatchcase(str(log), str(path))


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _plain(path: str) -> Path:
    return Path(os.path.abspath(path.removeprefix("file://")))  # noqa: PTH100 - pathlib keeps the `..`
