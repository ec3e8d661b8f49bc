"""StepSpec: one step as the runner sees it, with its identity and its place in the store.

The recipe is the name, `hash_attrs` and the identities of the dependencies; neither the store nor the
function's code is part of it. So a step has the same id on every machine. A step without a version
lies where its fingerprint says. One with a version lies at `{name}/{version}`, whatever its recipe,
and it is the version that its dependents know it by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import GeneratorType
from typing import Any, NoReturn

from treadle.artifacts import Json, find_prefix
from treadle.artifacts.prefix import join
from treadle.artifacts.version import check_version, is_dev
from treadle.errors import ArgumentError, FingerprintMismatchError, GraphError
from treadle.execution.handles.remote import Remote
from treadle.execution.identity import Attributes, attributes_text, identify, identity_of
from treadle.execution.retry import Retry
from treadle.execution.step_checks import (
    check_circumstances,
    check_fingerprint,
    check_name,
    check_runs,
    overridden_place,
)
from treadle.fray import ResourceConfig

_put = object.__setattr__


@dataclass(frozen=True, eq=False, slots=True)
class StepSpec:
    """A step: `fn(path)` fills the folder `path` and may return a small value.

    When the step commits, that folder becomes `output_path`: `{store}/{name}/{hash_id}`, with a version
    `{store}/{name}/{version}`, or `override_output_path`: an absolute path, a URL, or a path inside the
    store. `output_path_prefix` is the store (see `find_prefix`). `deps` may be any iterable; it is listed
    once. `resources`, `retry` and `timeout` (seconds) are circumstances, and no part of the identity.
    A step with a `source` is never computed: its data lies there already, and `fn` may be None.
    `expected_fingerprint`, or its first 12 digits or more, pins the recipe. Two specs are equal when they
    are the same recipe at the same place.

    Raises:
        ArgumentError: a name, a path, a version, a dependency, a function or a circumstance that is none.
        IdentityError: `hash_attrs` has no canonical form.
        FingerprintMismatchError: the recipe is not the one that was expected.
        GraphError: a fixed version that rests on a dev one.
    """

    name: str
    fn: Callable[[str], object] | None = field(repr=False)
    deps: Sequence[StepSpec] = field(default=(), repr=False)
    hash_attrs: Mapping[str, object] = field(default_factory=dict, repr=False)
    output_path_prefix: str | None = None
    override_output_path: str | None = field(default=None, repr=False)
    resources: ResourceConfig | None = field(default=None, repr=False)
    retry: Retry | None = field(default=None, repr=False)
    timeout: float | None = field(default=None, repr=False)
    version: str | None = None
    expected_fingerprint: str | None = field(default=None, repr=False)
    source: str | None = None
    config_text: str = field(init=False, repr=False)
    hash_id: str = field(init=False)
    output_path: str = field(init=False)
    id: str = field(init=False, repr=False)
    dev_origin: str | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        self._check_function()
        _put(self, "deps", _listed(self.name, self.deps))
        _put(self, "config_text", attributes_text(f"step {self.name!r}: hash_attrs", self.hash_attrs))
        _put(self, "hash_id", identify(self.name, self.config_text, [dep.identity for dep in self.deps]))
        _put(self, "output_path_prefix", find_prefix(self.output_path_prefix))
        self._settle()

    @property
    def config(self) -> Json:
        """The canonical form of `hash_attrs`."""
        return json.loads(self.config_text)  # type: ignore[no-any-return]

    @property
    def identity(self) -> str:
        """What the step is called in the identity of its dependents."""
        return identity_of(self.name, self.version, self.hash_id)

    @property
    def dep_ids(self) -> tuple[str, ...]:
        """The ids of the dependencies, each once, in the order in which they were given."""
        return tuple(dict.fromkeys([dep.id for dep in self.deps]))

    def _check_function(self) -> None:
        where = f"step {self.name!r}: fn"
        if isinstance(self.fn, Remote):
            _put(self, "resources", self.resources or self.fn.resources)
            _put(self, "fn", self.fn.function)
        if self.fn is None and self.source is not None:
            return
        if not callable(self.fn):
            raise ArgumentError(f"{where}: expected a function of the output path, got {self.fn!r}")
        check_runs(where, self.fn)

    def _settle(self) -> None:
        """Check the options, and derive what follows from the identity."""
        version, fixed = self.version, self.hash_id
        where = f"step {self.name!r}"
        check_circumstances(where, self.resources, self.retry, self.timeout)
        if version is not None:
            fixed = check_version(version, f"{where}: version")
        _put(self, "id", f"{self.name}@{version}" if version is not None else f"{self.name}-{fixed[:12]}")
        _put(self, "output_path", self._place(where, fixed))
        _put(self, "dev_origin", self._dev_origin())
        if (expected := self.expected_fingerprint) is not None:
            check_fingerprint(where, expected)
            if not self.hash_id.startswith(expected):
                raise FingerprintMismatchError(self.id, expected, self.hash_id)

    def _place(self, where: str, last: str) -> str:
        store = str(self.output_path_prefix)
        if self.override_output_path is None:
            return join(store, f"{self.name}/{last}")
        return overridden_place(where, store, self.override_output_path)

    def _dev_origin(self) -> str | None:
        """The id of the dev step that it is, or rests on with nothing fixed in between."""
        if is_dev(self.version):
            return self.id
        for dep in self.deps:
            if dep.dev_origin is not None:
                return dep.dev_origin if self.version is None else _refuse_dev(self.id, dep)
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepSpec):
            return NotImplemented
        return (self.name, self.hash_id, self.output_path) == (other.name, other.hash_id, other.output_path)

    def __hash__(self) -> int:
        return hash(self.hash_id)

    def __copy__(self) -> StepSpec:
        return self

    def __deepcopy__(self, memo: object) -> StepSpec:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """All steps that it depends on in one list: pickling from step to step would end at some depth."""
        places: dict[int, int] = {}
        states: list[tuple[Any, ...]] = []
        for step in with_dependencies(self):
            places[id(step)] = len(states)
            values = [getattr(step, name) for name in _FIELDS]
            states.append(([places[id(dep)] for dep in step.deps], *values))
        return _restored, (states,)


_FIELDS = tuple(each.name for each in fields(StepSpec) if each.name != "deps")


def lowered_spec(deps: tuple[StepSpec, ...], config_text: str, hash_id: str, **options: Any) -> StepSpec:
    """A spec whose name, function, store and identity are known to be right.

    Raises:
        ArgumentError, FingerprintMismatchError, GraphError: as `StepSpec`.
    """
    spec = object.__new__(StepSpec)
    _put(spec, "deps", deps)
    _put(spec, "config_text", config_text)
    _put(spec, "hash_id", hash_id)
    _put(spec, "hash_attrs", Attributes(config_text))
    for name in _OPTIONS:
        _put(spec, name, options.get(name))
    spec._settle()
    return spec


_OPTIONS = tuple(
    each.name for each in fields(StepSpec) if each.init and each.name not in ("deps", "hash_attrs")
)


def with_dependencies(step: StepSpec) -> list[StepSpec]:
    """The step and all that it depends on, each object once, dependencies first; depth is no limit."""
    order: dict[int, StepSpec] = {}
    stack = [step]
    while stack:
        top = stack[-1]
        waiting = () if id(top) in order else [dep for dep in top.deps if id(dep) not in order]
        if waiting:
            stack.extend(waiting)
        else:
            order.setdefault(id(top), stack.pop())
    return list(order.values())


def _restored(states: list[tuple[Any, ...]]) -> StepSpec:
    steps: list[StepSpec] = []
    for deps, *values in states:
        step = object.__new__(StepSpec)
        _put(step, "deps", tuple(steps[place] for place in deps))
        for name, value in zip(_FIELDS, values, strict=True):
            _put(step, name, value)
        steps.append(step)
    return steps[-1]


def _refuse_dev(step_id: str, dep: StepSpec) -> NoReturn:
    way = "" if dep.dev_origin == dep.id else f" (through {dep.id})"
    raise GraphError(
        f"step {step_id} has a fixed version and depends on {dep.dev_origin}{way}, which every run builds "
        f"again; give {dep.dev_origin.partition('@')[0] if dep.dev_origin else ''} a fixed version, "
        f"or make {step_id.partition('@')[0]} a dev version too"
    )


def _listed(name: str, deps: object) -> tuple[StepSpec, ...]:
    if isinstance(deps, str | StepSpec) or not hasattr(deps, "__iter__"):
        raise ArgumentError(f"step {name!r}: deps: expected several steps, got {deps!r}")
    if isinstance(deps, GeneratorType) and deps.gi_frame is None:
        raise ArgumentError(
            f"step {name!r}: deps: expected several steps, got a generator that is used up: "
            "put its steps into a list first"
        )
    listed = tuple(deps)
    for place, dep in enumerate(listed):
        if not isinstance(dep, StepSpec):
            raise ArgumentError(
                f"step {name!r}: deps[{place}]: expected a StepSpec (lower() makes one), got {dep!r}"
            )
    return listed
