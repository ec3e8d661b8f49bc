"""Run types and legacy modes by name: the function that runs a manifest, and the one that checks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.errors import ManifestError, Problem, nearest
from treadle.kernel.registry import Registry
from treadle.manifest import Manifest

if TYPE_CHECKING:  # they need tables, which the check of a manifest does not
    from treadle.domain.result import Counters
    from treadle.processing.job import Job

PatternRunner = Callable[["Job"], "Counters"]
"""Reads the inputs of the job, writes its outputs through `job.session`, and returns the row counters.

It neither commits nor aborts: the run does, when it has checked the counters. It ends with
`return job.account.close()`."""

LEGACY_BEFORE = 3
"""Manifests of an earlier version name a mode instead of a run type."""

PatternCheck = Callable[[Manifest], object]
"""Raises ManifestError, with the places, when the manifest does not fit its run type. Reads no data."""

_runners: Registry[PatternRunner] = Registry("run type")
_checks: Registry[PatternCheck] = Registry("check of a run type")
_modes: Registry[PatternRunner] = Registry("mode")
_scratch: dict[str, tuple[str, ...]] = {}


def register_pattern_runner(
    name: str, runner: PatternRunner, check: PatternCheck | None = None, *, scratch: tuple[str, ...] = ()
) -> PatternRunner:
    """Let manifests say `run: {type: name}`; `check` looks at such a manifest before anything is opened.

    `scratch` are further outputs that can be written, as arrow files that never appear: phases of the run
    hand rows to each other in them.

    Raises:
        ArgumentError: the name is taken by another runner.
    """
    _runners.register(name, runner)
    _scratch[name] = scratch
    if check is not None:
        _checks.register(name, check)
    return runner


def register_mode_runner(mode: str, runner: PatternRunner) -> PatternRunner:
    """Let manifests of the legacy form say `execution: {mode: ...}`.

    Raises:
        ArgumentError: the mode is taken by another runner.
    """
    _modes.register(mode, runner)
    return runner


def get_mode_runner(mode: str) -> PatternRunner:
    """The runner of that mode of legacy manifests.

    Raises:
        UnknownNameError: there is none; the message lists the known.
    """
    return _modes.get(mode)


def known_modes() -> tuple[str, ...]:
    """The modes that have a runner, sorted."""
    return _modes.names()


def scratch_of(name: str) -> tuple[str, ...]:
    """The scratch outputs of that run type."""
    return _scratch.get(name, ())


def get_pattern_runner(name: str) -> PatternRunner:
    """The runner of that run type.

    Raises:
        UnknownNameError: there is none; the message lists the known.
    """
    return _runners.get(name)


def known_patterns() -> tuple[str, ...]:
    """The run types that have a runner, sorted."""
    return _runners.names()


def check_manifest(manifest: Manifest) -> None:
    """Check a manifest against its run type, before anything is opened.

    Raises:
        ManifestError: its run type does not allow it, or the type is unknown and there is no entry.
    """
    chosen = manifest.execution
    if chosen.version < LEGACY_BEFORE:
        if chosen.mode not in known_modes() and chosen.entry is None:
            raise ManifestError([unknown_type(manifest)])
    elif chosen.pattern is not None and chosen.pattern in _checks:
        _checks.get(chosen.pattern)(manifest)
    elif chosen.pattern not in known_patterns() and chosen.entry is None:
        raise ManifestError([unknown_type(manifest)])


def unknown_type(manifest: Manifest) -> Problem:
    """The problem of a manifest that asks for a run type, or a mode, that nobody registered."""
    chosen = manifest.execution
    if chosen.version < LEGACY_BEFORE:
        asked, known, other = chosen.mode, known_modes(), "a dotted runner"
    else:
        asked, known, other = chosen.pattern, known_patterns(), "another type with run.entry"
    expected = f"one of {', '.join(known)}, or {other}" if known else other
    return manifest.problem("run.type", expected, repr(asked), nearest(str(asked), known))


def _built_in(name: str, module: str = "", *, scratch: tuple[str, ...] = ()) -> None:
    """A run type whose modules are loaded when they are needed: most manifests need one of them."""
    kind = module or name
    _runners.defer(name, f"treadle.processing.patterns.{kind}", f"run_{kind}")
    _checks.defer(name, "treadle.processing.type_checks", f"check_{kind}")
    _scratch[name] = scratch


_built_in("cluster", scratch=("sizes",))
_built_in("dedup", scratch=("digests", "drops"))
_built_in("embed_train")
_built_in("generate")
_built_in("mapping", scratch=("partials", "merged"))
_built_in("partition")
_built_in("reduce", scratch=("partials",))
_built_in("reduce_merge", "reduce", scratch=("partials",))
_built_in("transform")
