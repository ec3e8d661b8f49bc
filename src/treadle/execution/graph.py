"""The steps of a run and everything they need, listed and checked before any effect."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import CellType, FunctionType, MethodType
from typing import Any

from treadle.artifacts import fingerprint
from treadle.artifacts.code_hash import bytecode_hash
from treadle.artifacts.drift import describe_changes, recipe_changes
from treadle.errors import ArgumentError, GraphError, IdentityError, UnknownNameError
from treadle.execution.step_spec import StepSpec
from treadle.kernel import arrange


@dataclass(frozen=True)
class StepGraph:
    """`targets` are the steps asked for; `order` has all step ids, dependencies first."""

    steps: Mapping[str, StepSpec]
    deps: Mapping[str, tuple[str, ...]]
    dependents: Mapping[str, tuple[str, ...]]
    targets: tuple[str, ...]
    order: tuple[str, ...]

    def find(self, names: Iterable[str]) -> set[str]:
        """The ids of the steps that have one of these names or ids.

        Raises:
            UnknownNameError: no step has it.
        """
        by_name: dict[str, set[str]] = {}
        for key, step in self.steps.items():
            by_name.setdefault(step.name, set()).add(key)
            by_name.setdefault(key, set()).add(key)
        found: set[str] = set()
        for name in names:
            if name not in by_name:
                raise UnknownNameError("step", name, {step.name for step in self.steps.values()})
            found |= by_name[name]
        return found

    def with_descendants(self, keys: Iterable[str]) -> set[str]:
        """`keys` and every step that depends on one of them, near or far."""
        reached: set[str] = set()
        stack = list(keys)
        while stack:
            if (key := stack.pop()) not in reached:
                reached.add(key)
                stack.extend(self.dependents[key])
        return reached

    def narrowed(self, targets: Iterable[str]) -> StepGraph:
        """The graph of these steps and what they need."""
        keep: set[str] = set()
        stack = list(targets)
        while stack:
            if (key := stack.pop()) not in keep:
                keep.add(key)
                stack.extend(self.deps[key])
        wanted = set(targets)
        return StepGraph(
            steps={key: self.steps[key] for key in self.order if key in keep},
            deps={key: self.deps[key] for key in self.order if key in keep},
            dependents={
                key: tuple(each for each in self.dependents[key] if each in keep)
                for key in self.order
                if key in keep
            },
            targets=tuple(key for key in self.order if key in wanted),
            order=tuple(key for key in self.order if key in keep),
        )


def gather(steps: Iterable[StepSpec], known: Container[str] = ()) -> StepGraph:
    """The graph of these steps and of all that they depend on; what the `known` ones need is left out.

    Raises:
        ArgumentError: something that is no step.
        GraphError: a cycle (as a path), a step that depends on itself, two different steps with one
            id or at one place, or a place inside another.
    """
    targets = _checked(steps)
    found = _reached(targets, known)
    deps = {key: () if key in known else step.dep_ids for key, step in found.items()}
    order = arrange(deps)
    _check_places(found)
    dependents: dict[str, list[str]] = {key: [] for key in order}
    for key in order:
        for dep in deps[key]:
            dependents[dep].append(key)
    frozen = {key: tuple(each) for key, each in dependents.items()}
    return StepGraph(found, deps, frozen, tuple(dict.fromkeys(step.id for step in targets)), order)


def _checked(steps: Iterable[StepSpec]) -> list[StepSpec]:
    if isinstance(steps, StepSpec):
        raise ArgumentError(f"steps: expected several steps, got one: put {steps.id} into a list")
    listed = list(steps)
    for place, step in enumerate(listed):
        if not isinstance(step, StepSpec):
            raise ArgumentError(f"steps[{place}]: expected a StepSpec (lower() makes one), got {step!r}")
    return listed


def _reached(targets: Iterable[StepSpec], known: Container[str]) -> dict[str, StepSpec]:
    """Every step, by id. A step that was built twice is there once, if both are the same."""
    found: dict[str, StepSpec] = {}
    seen: set[int] = set()
    stack = list(targets)
    while stack:
        step = stack.pop()
        if id(step) not in seen:
            seen.add(id(step))
            _check_same(found.setdefault(step.id, step), step)
            if step.id not in known:
                stack.extend(step.deps)
    return found


def _check_same(known: StepSpec, step: StepSpec) -> None:
    if known is step:
        return
    if known.output_path != step.output_path:
        raise GraphError(f"step {step.id} is there twice, at {known.output_path} and at {step.output_path}")
    if known.hash_id != step.hash_id:
        changes = recipe_changes(known.config, step.config, known.dep_ids, step.dep_ids)
        raise GraphError(
            f"step {step.id} is there twice, with different recipes: {describe_changes(changes)}; "
            "give one of them another version or another name"
        )
    if known.source != step.source:
        raise GraphError(f"step {step.id} is adopted twice, from {known.source} and from {step.source}")
    if known.fn is not step.fn and _recipe(known.fn) != _recipe(step.fn):
        raise GraphError(
            f"step {step.id} is there twice, with different functions: {known.fn!r} and {step.fn!r}; "
            "what they differ in belongs into hash_attrs, or into the name"
        )


def _check_places(steps: Mapping[str, StepSpec]) -> None:
    owners: dict[str, str] = {}
    for key, step in steps.items():
        if (other := owners.setdefault(step.output_path, key)) != key:
            raise GraphError(f"steps {other} and {key} differ and have the same place: {step.output_path}")
    for place, key in owners.items():
        above = place.rpartition("/")[0]
        while above:
            if above in owners:
                raise GraphError(f"the place of step {key} lies inside that of step {owners[above]}: {place}")
            above = above.rpartition("/")[0]


def _recipe(fn: Any) -> object:
    """What two functions have in common when they are one, built twice: code and captured values."""
    if not isinstance(fn, partial):  # one may have a `__wrapped__` that knows nothing of what it binds
        fn = getattr(fn, "__wrapped__", fn)
    if isinstance(fn, MethodType):
        return (_recipe(fn.__func__), _comparable(fn.__self__))
    if isinstance(fn, partial):
        bound = (*fn.args, *chain.from_iterable(sorted(fn.keywords.items())))
        return (_recipe(fn.func), *map(_comparable, bound))
    if isinstance(fn, FunctionType):
        cells = (_cell_content(cell) for cell in fn.__closure__ or ())
        defaults = (*(fn.__defaults__ or ()), *chain.from_iterable((fn.__kwdefaults__ or {}).items()))
        return (fn.__module__, bytecode_hash(fn.__code__), *map(_comparable, (*cells, *defaults)))
    return fn


def _cell_content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is set further down
        return cell


def _comparable(value: object) -> object:
    if isinstance(value, FunctionType):
        return bytecode_hash(value.__code__)
    try:
        return fingerprint(value)
    except IdentityError:
        return id(value)
