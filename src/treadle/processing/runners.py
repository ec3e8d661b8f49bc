"""Run types by name: which function carries out a manifest of a type, and which one checks it."""

from __future__ import annotations

from collections.abc import Callable

from treadle.domain.result import Counters
from treadle.errors import ManifestError, nearest
from treadle.kernel.registry import Registry
from treadle.manifest import Manifest
from treadle.processing.job import Job
from treadle.processing.patterns.cluster import check_cluster, run_cluster
from treadle.processing.patterns.embed_train import check_embed_train, run_embed_train
from treadle.processing.patterns.generate import check_generate, run_generate
from treadle.processing.patterns.mapping import check_mapping, run_mapping
from treadle.processing.patterns.partition import check_partition, run_partition
from treadle.processing.patterns.reduce import check_reduce, run_reduce

PatternRunner = Callable[[Job], Counters]
"""Reads the inputs of the job, writes its outputs through `job.session`, and says how the rows fared.

It neither commits nor aborts: the run does, when it has checked the counters."""

PatternCheck = Callable[[Manifest], object]
"""Raises ManifestError, with the places, when the manifest does not fit its run type. Reads no data."""

_runners: Registry[PatternRunner] = Registry("run type")
_checks: Registry[PatternCheck] = Registry("check of a run type")


def register_pattern_runner(
    name: str, runner: PatternRunner, check: PatternCheck | None = None
) -> PatternRunner:
    """Let manifests say `run: {type: name}`; `check` looks at such a manifest before anything is opened.

    Raises:
        ArgumentError: the name is taken by another runner.
    """
    ensure_builtin_runners()
    return _register(name, runner, check)


def get_pattern_runner(name: str) -> PatternRunner:
    """The runner of that run type.

    Raises:
        UnknownNameError: there is none; the message lists the known.
    """
    ensure_builtin_runners()
    return _runners.get(name)


def known_patterns() -> tuple[str, ...]:
    """The run types that have a runner, sorted."""
    ensure_builtin_runners()
    return _runners.names()


def check_manifest(manifest: Manifest) -> None:
    """Hold a manifest to its run type, before anything is opened.

    Raises:
        ManifestError: what its run type does not allow; a type that is unknown, without an entry.
    """
    run, known = manifest.run, known_patterns()
    if run.type in _checks:
        _checks.get(run.type)(manifest)
    elif run.type not in known and run.entry is None:
        expected = f"one of {', '.join(known)}, or another type with run.entry"
        problem = manifest.problem("run.type", expected, repr(run.type), nearest(run.type, known))
        raise ManifestError([problem])


def ensure_builtin_runners() -> None:
    """Register the run types of this package. Done again, it changes nothing."""
    _register("cluster", run_cluster, check_cluster)
    _register("embed_train", run_embed_train, check_embed_train)
    _register("generate", run_generate, check_generate)
    _register("mapping", run_mapping, check_mapping)
    _register("partition", run_partition, check_partition)
    _register("reduce", run_reduce, check_reduce)


def _register(name: str, runner: PatternRunner, check: PatternCheck | None) -> PatternRunner:
    _runners.register(name, runner)
    if check is not None:
        _checks.register(name, check)
    return runner
