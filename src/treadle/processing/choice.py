"""What carries a manifest out: a registered pattern, a mode runner of a legacy manifest, or an entry.

Versions 3 and 4: a registered pattern wins, else the entry. Legacy: the mode, if it is registered, else the
dotted runner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treadle.errors import ManifestError
from treadle.manifest import Manifest
from treadle.processing.entry import import_entry
from treadle.processing.runners import (
    LEGACY_BEFORE,
    PatternRunner,
    get_mode_runner,
    get_pattern_runner,
    known_modes,
    known_patterns,
    scratch_of,
    unknown_type,
)


@dataclass(frozen=True)
class Pattern:
    """A runner that works with a job; `scratch` are the outputs that its phases hand to each other."""

    name: str
    runner: PatternRunner
    scratch: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A callable `(ctx, manifest_path=...)` that reads the manifest itself."""

    name: str
    call: Callable[..., object]


def choose(manifest: Manifest) -> Pattern | Entry:
    """What the manifest asks for.

    Raises:
        ManifestError: nothing that is known here.
    """
    chosen = manifest.execution
    if chosen.version < LEGACY_BEFORE and chosen.mode is not None and chosen.mode in known_modes():
        return Pattern(chosen.mode, get_mode_runner(chosen.mode))
    if chosen.pattern is not None and chosen.pattern in known_patterns():
        return Pattern(chosen.pattern, get_pattern_runner(chosen.pattern), scratch_of(chosen.pattern))
    if chosen.entry is not None:
        return Entry(chosen.entry, import_entry(manifest, chosen.entry))
    raise ManifestError([unknown_type(manifest)])
