"""hamilton: one function a step in a module made for the purpose; with threads, and with its cache."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from pathlib import Path

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, sinks, work


def run_threads(needs: Needs, _: Path) -> object:
    """Futures on a pool of threads; nothing is kept."""
    from hamilton import driver
    from hamilton.plugins.h_threadpool import FutureAdapter

    built = driver.Builder().with_modules(_module(needs)).with_adapters(FutureAdapter(max_workers=THREADS))
    return built.build().execute([f"s{key}" for key in sinks(needs)])


def run_cached(needs: Needs, store: Path) -> object:
    """Its cache, which has no threads."""
    from hamilton import driver

    built = driver.Builder().with_modules(_module(needs)).with_cache(path=store)
    return built.build().execute([f"s{key}" for key in sinks(needs)])


def _module(needs: Needs) -> types.ModuleType:
    module = types.ModuleType("steps_of_the_benchmark")
    sys.modules[module.__name__] = module  # hamilton takes the functions whose module is this one
    for key, some in needs.items():
        setattr(module, f"s{key}", _function(module.__name__, key, some))
    return module


def _function(module: str, key: int, some: tuple[int, ...]) -> Callable[..., int]:
    """A function whose parameters are the names of the steps that it needs."""

    def node(**values: int) -> int:
        return work(key, *values.values())

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(f"s{each}", kind, annotation=int) for each in some]
    node.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    node.__annotations__ = {**{each.name: int for each in parameters}, "return": int}
    node.__name__ = node.__qualname__ = f"s{key}"
    node.__module__ = module
    return node


THREADED = Contender(
    "hamilton threads",
    "sf-hamilton",
    "nothing",
    f"FutureAdapter(max_workers={THREADS})",
    run_threads,
    warm=False,
)
CACHED = Contender(
    "hamilton cache", "sf-hamilton", "value; a file a step, SQLite", "with_cache; one thread", run_cached
)
