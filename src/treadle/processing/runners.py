"""Run types by name: the function that runs a manifest of a type, and the one that checks it."""

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
"""Reads the inputs of the job, writes its outputs through `job.session`, and returns the row counters.

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
    _runners.register(name, runner)
    if check is not None:
        _checks.register(name, check)
    return runner


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
    run, known = manifest.run, known_patterns()
    if run.type in _checks:
        _checks.get(run.type)(manifest)
    elif run.type not in known and run.entry is None:
        expected = f"one of {', '.join(known)}, or another type with run.entry"
        problem = manifest.problem("run.type", expected, repr(run.type), nearest(run.type, known))
        raise ManifestError([problem])


register_pattern_runner("cluster", run_cluster, check_cluster)
register_pattern_runner("embed_train", run_embed_train, check_embed_train)
register_pattern_runner("generate", run_generate, check_generate)
register_pattern_runner("mapping", run_mapping, check_mapping)
register_pattern_runner("partition", run_partition, check_partition)
register_pattern_runner("reduce", run_reduce, check_reduce)
