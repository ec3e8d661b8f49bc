"""The options that commands share; None, or nothing, where the user gave none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from treadle.artifacts import find_prefix
from treadle.errors import ArgumentError
from treadle.execution import Event, OnDrift, OnFailure, StepSpec, VersionsUnused
from treadle.execution.handles.versions import Versions
from treadle.experiment.run import AnyStep
from treadle.experiment.target import load_target
from treadle.fray.client import find_cluster
from treadle.integrations.cli.console import warn
from treadle.integrations.cli.lookup import StoreOption
from treadle.integrations.cli.params import parse_params
from treadle.settings import find_settings

MAX_CONCURRENT = 8

Several: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Lowering:
    """Where the steps lie, and which versions they have."""

    store: StoreOption = None
    version: Annotated[str | None, Parameter(help="The version of every step that has none of its own.")] = (
        None
    )
    version_of: Annotated[
        Several,
        Parameter(
            negative="",
            show_default=False,
            help="The version of one step, or of all that fit a pattern, as NAME=VERSION; may be repeated.",
        ),
    ] = ()

    @property
    def versions(self) -> Versions | None:
        """The versions asked for; None when there are none."""
        names = parse_params(self.version_of, "--version-of")
        return Versions(self.version, names) if names or self.version is not None else None

    def given(self) -> list[str]:
        """The names of the options that the user gave."""
        changed = (each.name for each in fields(self) if getattr(self, each.name) != each.default)
        return [f"--{name.replace('_', '-')}" for name in changed]

    def words(self) -> list[str]:
        """What the user gave, as it is written in a command."""
        values = {name: getattr(self, name[2:].replace("-", "_")) for name in self.given()}
        several = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}
        return [word for name, each in several.items() for value in each for word in (name, str(value))]

    def lowering(self) -> Lowering:
        """The part of them that every command has which takes a target."""
        return Lowering(store=self.store, version=self.version, version_of=self.version_of)


@dataclass(frozen=True, kw_only=True)
class Asked(Lowering):
    """Which steps are asked for, and how a plan of them is made."""

    select: Annotated[
        Several,
        Parameter(
            negative="",
            show_default=False,
            help="Only these steps and what they need: NAME, +NAME, NAME+, a pattern, `failed` or `changed`; "
            "may be repeated.",
        ),
    ] = ()
    force: Annotated[
        Several,
        Parameter(
            negative="",
            show_default=False,
            help="A step, by name or id, that runs though it is done, and what depends on it; "
            "may be repeated.",
        ),
    ] = ()
    on_drift: Annotated[
        OnDrift | None,
        Parameter(help="What becomes of a done step that has changed since it was built; by default warn."),
    ] = None
    max_concurrent: Annotated[
        int | None, Parameter(help=f"How many steps run at once; by default {MAX_CONCURRENT}.")
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(
            help="Where the steps run: local, processes, ray, or a cluster of the settings; by default "
            "TREADLE_CLUSTER, else what the settings say, else threads of this process."
        ),
    ] = None

    def planning(self) -> dict[str, Any]:
        """The arguments of `plan`, which are among those of `run`.

        Raises:
            UnknownNameError: there is no such cluster.
            ArgumentError: its settings are wrong, or the versions are.
        """
        if self.cluster is not None:
            find_cluster(self.cluster, find_settings())
        return {
            "prefix": self.store,
            "max_concurrent": MAX_CONCURRENT if self.max_concurrent is None else self.max_concurrent,
            "select": self.select,
            "force": self.force,
            "on_drift": self.on_drift or "warn",
            "versions": self.versions,
        }


@dataclass(frozen=True, kw_only=True)
class Running(Asked):
    """How a run goes."""

    on_failure: Annotated[
        OnFailure | None,
        Parameter(
            help="After a failure, go on with what does not depend on it, or stop; by default continue."
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Only show the plan, as `treadle plan` does."),
    ] = False


# What commands have for a default: nothing given.
LOWERING, ASKED, RUNNING = Lowering(), Asked(), Running()


def load(target: str, store: str | None) -> tuple[AnyStep | Iterator[AnyStep], ...]:
    """What `run` takes: the steps of a target, or the one iterator that gives them; see `load_target`.

    Raises:
        ArgumentError: a StepSpec among them has another store than the one asked for.
    """
    steps = load_target(target)
    checked = iter(steps) if store is None else _in_store(steps, store)
    return (checked,) if isinstance(steps, Iterator) else tuple(checked)


def _in_store(steps: Iterable[AnyStep], store: str) -> Iterator[AnyStep]:
    prefix = find_prefix(store)
    for step in steps:
        if isinstance(step, StepSpec) and step.output_path_prefix != prefix:
            raise ArgumentError(
                f"--store {store}: step {step.id} is a StepSpec, and has a store already: "
                f"{step.output_path_prefix}; leave --store out, or set TREADLE_PREFIX in its place"
            )
        yield step


def tell_unused(event: Event) -> None:
    """A reporter for commands that run nothing."""
    if isinstance(event, VersionsUnused):
        warn(f"no step has the name of these versions: {', '.join(event.names)}")
