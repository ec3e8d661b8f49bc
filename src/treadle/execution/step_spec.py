"""StepSpec: one step as the runner sees it, with its identity and its place in the store.

The identity is the name, `hash_attrs` and the identities of the dependencies; neither the store nor
the function's code is part of it. So a step has the same id on every machine.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from treadle.artifacts import Json, canonical, find_prefix, fingerprint
from treadle.errors import ArgumentError
from treadle.fray import ResourceConfig

_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True, eq=False)
class StepSpec:
    """A step: `fn(output_path)` fills its folder and may return a small value.

    `output_path_prefix` is the store (see `find_prefix`). The folder is `{store}/{name}/{hash_id}`,
    or `override_output_path`: an absolute path, or one inside the store. `deps` may be any iterable;
    it is listed once. `resources` are what the job asks its client for. Two specs are equal when they are
    the same step at the same place.

    Raises:
        ArgumentError: a name, a path, a dependency or a function that is none.
        IdentityError: `hash_attrs` has no canonical form.
    """

    name: str
    fn: Callable[[str], object] = field(repr=False)
    deps: Sequence[StepSpec] = field(default=(), repr=False)
    hash_attrs: Mapping[str, object] = field(default_factory=dict, repr=False)
    output_path_prefix: str | None = None
    override_output_path: str | None = None
    resources: ResourceConfig | None = None
    config: Json = field(init=False, repr=False)
    hash_id: str = field(init=False)
    output_path: str = field(init=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if not callable(self.fn):
            raise ArgumentError(
                f"step {self.name!r}: fn: expected a function of the output path, got {self.fn!r}"
            )
        check_runs(f"step {self.name!r}: fn", self.fn)
        put = object.__setattr__
        put(self, "deps", _listed(self.name, self.deps))
        put(self, "config", canonical(self.hash_attrs, f"step {self.name!r}: hash_attrs"))
        put(self, "hash_id", _identify(self.name, self.config, self.deps))
        put(self, "output_path_prefix", find_prefix(self.output_path_prefix))
        put(self, "output_path", self._place())

    @property
    def id(self) -> str:
        """The name and the beginning of the identity: for people, and for mappings of results."""
        return f"{self.name}-{self.hash_id[:12]}"

    @property
    def dep_ids(self) -> tuple[str, ...]:
        """The ids of the dependencies, each once, in the order in which they were given."""
        return tuple(dict.fromkeys(dep.id for dep in self.deps))

    def _place(self) -> str:
        store = str(self.output_path_prefix)
        if self.override_output_path is None:
            return str(PurePath(store, self.name, self.hash_id))
        override = PurePath(self.override_output_path)
        if not override.parts or ".." in override.parts:
            raise ArgumentError(
                f"step {self.name!r}: override_output_path: expected an absolute path, "
                f"or one inside the store, without '..', got {self.override_output_path!r}"
            )
        place = PurePath(store, override)
        if PurePath(store).is_relative_to(place):
            raise ArgumentError(
                f"step {self.name!r}: override_output_path: expected a folder of the step's own, "
                f"got {place}, which holds the store: the step would clear it"
            )
        return str(place)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepSpec):
            return NotImplemented
        return (self.name, self.hash_id, self.output_path) == (other.name, other.hash_id, other.output_path)

    def __hash__(self) -> int:
        return hash(self.hash_id)


def _identify(name: str, config: Json, deps: Sequence[StepSpec]) -> str:
    """The identity of a step, in hex; the order of the dependencies does not matter."""
    return fingerprint([name, config, sorted({dep.hash_id for dep in deps})])


def check_name(name: object) -> None:
    """See that `name` is a relative path of plain segments, since it becomes a folder.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise ArgumentError(
            f"step name: expected letters, digits, '_', '-' and '.', in segments parted by '/', got {name!r}"
        )


def check_runs(where: str, fn: object) -> None:
    """See that a call of `fn` runs its body: that of a generator or async function only makes an object.

    Raises:
        ArgumentError: it does not.
    """
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise ArgumentError(
            f"{where}: expected an ordinary function, got {fn!r}, a generator or async function: calling it "
            "runs nothing; collect the items in it, or call asyncio.run in it"
        )


def _listed(name: str, deps: object) -> tuple[StepSpec, ...]:
    if isinstance(deps, str | StepSpec) or not hasattr(deps, "__iter__"):
        raise ArgumentError(f"step {name!r}: deps: expected several steps, got {deps!r}")
    listed = tuple(deps)
    for place, dep in enumerate(listed):
        if not isinstance(dep, StepSpec):
            raise ArgumentError(
                f"step {name!r}: deps[{place}]: expected a StepSpec (lower() makes one), got {dep!r}"
            )
    return listed
