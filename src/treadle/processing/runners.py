"""Run types by name: which function carries out a manifest of a type."""

from __future__ import annotations

from collections.abc import Callable

from treadle.domain.result import Counters
from treadle.kernel.registry import Registry
from treadle.processing.job import Job
from treadle.processing.patterns.cluster import run_cluster
from treadle.processing.patterns.embed_train import run_embed_train
from treadle.processing.patterns.generate import run_generate
from treadle.processing.patterns.mapping import run_mapping
from treadle.processing.patterns.partition import run_partition
from treadle.processing.patterns.reduce import run_reduce

PatternRunner = Callable[[Job], Counters]
"""Reads the inputs of the job, writes its outputs through `job.session`, and says how the rows fared.

It neither commits nor aborts: the run does, when it has checked the counters."""

_runners: Registry[PatternRunner] = Registry("run type")


def register_pattern_runner(name: str, runner: PatternRunner) -> PatternRunner:
    """Let manifests say `run: {type: name}`.

    Raises:
        ArgumentError: the name is taken by another runner.
    """
    ensure_builtin_runners()
    return _runners.register(name, runner)


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


def ensure_builtin_runners() -> None:
    """Register the run types of this package. Done again, it changes nothing."""
    _runners.register("cluster", run_cluster)
    _runners.register("embed_train", run_embed_train)
    _runners.register("generate", run_generate)
    _runners.register("mapping", run_mapping)
    _runners.register("partition", run_partition)
    _runners.register("reduce", run_reduce)
