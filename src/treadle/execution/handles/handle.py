"""Handle: one call of a step that has not run.

A handle knows its recipe in canonical form, with its dependencies by their identities, and the hash of
it. So what it is follows from how it was made, in every process, before a store is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, Self, TypeVar

from treadle.artifacts import Json
from treadle.artifacts.canonical_text import STEP_TAG
from treadle.artifacts.fingerprint import canonical_text
from treadle.artifacts.version import check_version
from treadle.errors import ArgumentError, IdentityError
from treadle.execution.identity import identify, identity_of
from treadle.execution.retry import Retry
from treadle.execution.step_checks import check_circumstances, check_fingerprint, check_name
from treadle.execution.step_spec import StepSpec
from treadle.fray import ResourceConfig

R_co = TypeVar("R_co", covariant=True)

_put = object.__setattr__


class Recipe(Protocol):
    """How the `fn` of a step is made, once its dependencies have their places."""

    def bind(
        self, handle: Handle[Any], deps: Sequence[StepSpec], prefix: str, hash_id: str
    ) -> Callable[[str], object]:
        """The `fn`; `deps` are those of the handle, in its order.

        Raises:
            ArgumentError: the step cannot run as it is.
        """
        ...


class Options(NamedTuple):
    """What surrounds the run of a step, and where its output lies: no part of its identity."""

    resources: ResourceConfig | None = None
    retry: Retry | None = None
    timeout: float | None = None
    override_output_path: str | None = None
    source: str | None = None
    needs_version: bool = False

    def checked(self, where: str) -> Options:
        """These options, when they are what they should be.

        Raises:
            ArgumentError: one is not.
        """
        check_circumstances(where, self.resources, self.retry, self.timeout)
        return self


NO_OPTIONS = Options()


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Handle(Generic[R_co]):
    """One call of a step that has not run. `deps` are the handles that it depends on.

    `config_text` is the canonical form of the recipe, as JSON. Pickled, a handle keeps its identity and
    no more: where it arrives, it can be asked for and not lowered.
    """

    name: str
    recipe: Recipe
    deps: tuple[Handle[Any], ...]
    config_text: str
    version: str | None = None
    expected_fingerprint: str | None = None
    options: Options = NO_OPTIONS
    hash_id: str = field(init=False)
    lowered: tuple[StepSpec, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        _put(self, "hash_id", identify(self.name, self.config_text, [dep.identity for dep in self.deps]))

    def named(self, name: str) -> Self:
        """The same call under another name, so another step.

        Raises:
            ArgumentError: it is no name for a step.
        """
        check_name(name)
        hash_id = identify(name, self.config_text, [dep.identity for dep in self.deps])
        return self._changed(name=name, hash_id=hash_id)

    def at(self, version: str | None) -> Self:
        """The same call at `{name}/{version}`, known to its dependents as `name@version`.

        Raises:
            ArgumentError: it is no version.
        """
        if version is not None:
            check_version(version, f"step {self.name!r}: version")
        return self._changed(version=version)

    def with_options(
        self,
        *,
        resources: ResourceConfig | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
    ) -> Self:
        """The same step under other circumstances; what is not given stays. `timeout` is in seconds.

        Raises:
            ArgumentError: something is no such circumstance.
        """
        given: dict[str, Any] = {"resources": resources, "retry": retry, "timeout": timeout}
        options = self.options._replace(**{name: each for name, each in given.items() if each is not None})
        return self._changed(options=options.checked(f"step {self.name!r}"))

    def expecting(self, fingerprint: str | None) -> Self:
        """The same step, refused when it is lowered with another fingerprint; 12 digits or more of it.

        Raises:
            ArgumentError: it is no fingerprint.
        """
        check_fingerprint(f"step {self.name!r}", fingerprint)
        return self._changed(expected_fingerprint=fingerprint)

    @property
    def identity(self) -> str:
        """What the step is called in the identity of its dependents."""
        return identity_of(self.name, self.version, self.hash_id)

    @property
    def id(self) -> str:
        """The id of the step, as in the results of a run; it does not depend on the store."""
        return identity_of(self.name, self.version, self.hash_id[:12])

    def canonical_form(self) -> Json:
        """How it stands among the arguments in the identity of its dependents."""
        return {STEP_TAG: self.identity}

    def _changed(self, **changes: Any) -> Self:
        changed = object.__new__(type(self))
        for name in _FIELDS:
            _put(changed, name, changes[name] if name in changes else getattr(self, name))
        _put(changed, "lowered", ())
        return changed

    def __repr__(self) -> str:
        return f"Handle({self.id})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reference, (self.name, self.version, self.config_text, self.hash_id)


_FIELDS = tuple(each.name for each in fields(Handle) if each.name != "lowered")


def recipe_text(where: str, attributes: dict[str, object], places: int | None = None) -> str:
    """The canonical form of the attributes of a recipe; handles in it stand by their identities.

    `places` is how many handles can give way to their values.

    Raises:
        IdentityError: something has no canonical form, or a handle stands where no value can be put.
    """
    text = canonical_text(attributes, where, Handle)
    if places is not None and text.count(f'{{"{STEP_TAG}":') != places:
        raise IdentityError(
            f"{where}: a step stands where its value cannot be put, such as the key of a dict or a field of "
            "a model; expected steps among the items of lists, tuples, sets, dicts and dataclasses"
        )
    return text


def listed_handles(where: str, deps: Iterable[object]) -> tuple[Handle[Any], ...]:
    """The handles, listed once.

    Raises:
        ArgumentError: they are not several handles.
    """
    if isinstance(deps, str | Handle) or not hasattr(deps, "__iter__"):
        raise ArgumentError(f"{where}: deps: expected several steps, got {deps!r}")
    listed = tuple(dict.fromkeys(deps))
    for number, dep in enumerate(listed):
        if not isinstance(dep, Handle):
            raise ArgumentError(f"{where}: deps[{number}]: expected a step handle, got {dep!r}")
    return listed  # type: ignore[return-value]


class _Elsewhere:
    """The recipe of a handle that was made in another process."""

    def bind(self, handle: Handle[Any], *_: object) -> NoReturn:
        raise ArgumentError(
            f"step {handle.id}: it came from another process, which has its function and arguments: "
            "lower it there"
        )


def _reference(name: str, version: str | None, config_text: str, hash_id: str) -> Handle[Any]:
    handle: Handle[Any] = Handle(name, _Elsewhere(), (), config_text, version)
    _put(handle, "hash_id", hash_id)
    return handle
