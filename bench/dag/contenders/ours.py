"""treadle: decorated steps, as its users write them; the handles are built and lowered within the time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.dag.contender import Contender
from bench.dag.graphs import THREADS, Needs, sinks, work


@cache
def step_of_work() -> Any:
    """The step function."""
    from treadle import step

    def node(key: int, values: Sequence[int]) -> int:
        return work(key, *values)

    return step(node)


def handles(needs: Needs) -> dict[int, Any]:
    """One handle a step."""
    node, made = step_of_work(), dict[int, Any]()
    for key, some in needs.items():
        made[key] = node(key, [made[each] for each in some])
    return made


def run_in(needs: Needs, prefix: str) -> object:
    """Run all that the sinks need, in the store `prefix`."""
    from treadle import run

    made = handles(needs)
    return run(*(made[key] for key in sinks(needs)), prefix=prefix, max_concurrent=THREADS)


def run_kept(needs: Needs, store: Path) -> object:
    """In a store on the disk."""
    return run_in(needs, str(store))


def run_all(needs: Needs, store: Path) -> object:
    """In a store on the disk; every step is asked for, so a warm run looks at every step."""
    from treadle import run

    return run(*handles(needs).values(), prefix=str(store), max_concurrent=THREADS)


def run_in_memory(needs: Needs, store: Path) -> object:
    """In a store that ends with the process."""
    return run_in(needs, f"memory://{store.name}")


def lowered(made: Iterable[Any], store: Path) -> list[Any]:
    """The specs of these handles."""
    from treadle import lower

    return [lower(each, str(store)) for each in made]


def spec(at: int, store: Path) -> Any:
    """Step number `at` as a spec without dependencies."""
    from treadle import StepSpec

    return StepSpec(
        f"node/{at}", partial(_spec_body, at), hash_attrs={"key": at}, output_path_prefix=str(store)
    )


def _spec_body(at: int, output_path: str) -> int:  # noqa: ARG001 - the step writes no file
    return work(at)


def run_specs(specs: Iterable[Any]) -> object:
    """Run specs, which may be a generator."""
    from treadle import StepRunner

    return StepRunner(max_concurrent=THREADS).run(specs)


def plan_specs(specs: Iterable[Any]) -> object:
    """Say what would run."""
    from treadle import StepRunner

    return StepRunner(max_concurrent=THREADS).run(specs, dry_run=True)


def plan(needs: Needs, store: Path) -> object:
    """Handles, `lower`, and a dry run in the store."""
    return plan_specs(lowered(handles(needs).values(), store))


_KEEPS = "value, record with provenance, history, attempts"
KEPT = Contender(
    "treadle",
    "treadle",
    _KEEPS,
    f"max_concurrent={THREADS}; all steps asked for: warm checks every one",
    run_all,
)
SINKS = Contender(
    "treadle, sinks asked for",
    "treadle",
    _KEEPS,
    f"max_concurrent={THREADS}; warm looks at the sinks and at what they need",
    run_kept,
)
MEMORY = Contender(
    "treadle in memory",
    "treadle",
    "the same, until the process ends",
    f'max_concurrent={THREADS}, prefix="memory://"',
    run_in_memory,
    warm=False,
)
