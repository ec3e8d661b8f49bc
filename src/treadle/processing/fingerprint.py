"""What the result of a unit depends on beside the unit: when it changes, a checkpoint is worth nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any

from treadle.artifacts.code_hash import code_hash
from treadle.errors import ManifestError
from treadle.manifest import Manifest
from treadle.processing.context import RunContext
from treadle.processing.entry import import_entry

_CANNOT_CHANGE_A_ROW: dict[str, Any] = {
    "params": True,  # they are filled in where they are used
    "parallelism": {"backend", "workers", "assign", "queue_depth"},
    "checkpoint": True,
    "metrics": True,
    "runtime": {"metrics_enabled"},
}


def fingerprint(manifest: Manifest, ctx: RunContext, code: Iterable[object]) -> str:
    """SHA-256, in hex, of the settings, the values of the params, and the version and code of what runs.

    `code` are the functions and classes of plugins that make the rows. Where units are worked on, and what is
    measured meanwhile, plays no part.
    """
    settings = manifest.model_dump(mode="json", exclude=_CANNOT_CHANGE_A_ROW)
    hashes = sorted({_code_of(each) for each in [*code, *_row_functions(manifest)]})
    parts = [metadata.version("treadle"), settings, dict(ctx.params), hashes]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _code_of(each: object) -> str:
    given: Any = each
    name = f"{getattr(given, '__module__', '')}.{getattr(given, '__qualname__', '')}"
    return f"{name}:{code_hash(given)}" if callable(given) else name


def _row_functions(manifest: Manifest) -> Iterator[object]:
    """What the options called `entry` of transforms name; one that is wrong is reported by its own check."""
    sections = [*([manifest.transform] if manifest.transform else []), *manifest.transforms]
    for section in sections:
        entry = section.options.get("entry")
        if isinstance(entry, str):
            try:
                yield import_entry(manifest, entry)
            except ManifestError:
                yield entry
