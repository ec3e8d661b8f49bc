"""`FrayClient(cluster)`: a place to run work, by name.

`"local"` is threads of this process, `"processes"` other processes of this machine, `"ray"` a Ray cluster on
this machine. Any other name is a table of the project's settings, `[clusters.NAME]` in `treadle.toml` or
`[tool.treadle.clusters.NAME]` in `pyproject.toml`:

    [clusters.production-cluster]
    backend = "ray"
    address = "10.0.0.7:6379"
    environment = { env_vars = { HF_HUB_OFFLINE = "1" } }

    [clusters.big-machine]
    backend = "processes"
    max_workers = 16
    memory = 64_000_000_000
    gpu = 2
    tags = { licence = 3 }

What a cluster of that name needs is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Never, Protocol, Self, TypeVar

from treadle.errors import ArgumentError, UnknownNameError
from treadle.extras import check_extra
from treadle.fray.cluster import ClusterConfig, read_cluster
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle, JobRequest
from treadle.fray.resources import ResourceConfig, machine_resources
from treadle.fray.threads import ThreadClient
from treadle.kernel import Registry
from treadle.settings import Settings, find_settings

T = TypeVar("T")
A = TypeVar("A")

BUILT_IN: Mapping[str, ClusterConfig] = {
    "local": ClusterConfig("threads"),
    "processes": ClusterConfig("processes"),
    "ray": ClusterConfig("ray"),
}
"""The clusters that need no settings; a table of the same name takes the place of one."""


class ClientBlock(Client, Protocol):
    """A client whose `with` block waits at its end for the jobs; one that an error leaves ends them first."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Leave the block."""
        ...


Backend = Callable[[ClusterConfig, Client], ClientBlock]
"""Builds what runs the jobs; the second argument is the client that the jobs know it as."""

backends: Registry[Backend] = Registry("fray backend")


def _threads(config: ClusterConfig, face: Client) -> ClientBlock:
    if not EnvironmentConfig(**config.environment).is_plain:
        raise ArgumentError("environment: threads share the one of this process: use processes or ray")
    return ThreadClient(config.max_workers, resources=_resources(config), known_as=face)


def _processes(config: ClusterConfig, face: Client) -> ClientBlock:
    from treadle.fray.processes import ProcessClient  # here: only who asks for processes loads them

    return ProcessClient(
        config.max_workers,
        resources=_resources(config),
        environment=EnvironmentConfig(**config.environment),
        max_result_bytes=config.max_result_bytes,
        known_as=face,
    )


def _ray(config: ClusterConfig, face: Client) -> ClientBlock:
    check_extra("ray", "the Ray backend", "ray")
    from treadle.fray.ray import RayClient  # here: Ray is an extra, and takes a second to load

    return RayClient(
        config.address,
        max_workers=config.max_workers,
        resources=_resources(config) if config.says_what_it_has else None,
        environment=EnvironmentConfig(**config.environment),
        connect_timeout=config.connect_timeout,
        max_result_bytes=config.max_result_bytes,
        object_store_bytes=config.object_store_bytes,
        spill_dir=config.spill_dir,
        known_as=face,
    )


def _resources(config: ClusterConfig) -> ResourceConfig:
    return machine_resources(cpu=config.cpu, memory=config.memory, gpu=config.gpu, tags=config.tags)


backends.register("threads", _threads)
backends.register("processes", _processes)
backends.register("ray", _ray)


class FrayClient:
    """A client for the cluster of that name.

    Raises:
        UnknownNameError: no such cluster, or its backend is unknown; lists the known.
        ArgumentError: its settings are wrong; names the file and the key.
        MissingExtraError: its backend needs a package that is not installed.
        ClusterError: it cannot be reached.
    """

    def __init__(self, cluster: str = "local", **options: Never) -> None:
        if options or not isinstance(cluster, str):
            raise ArgumentError(_not_a_name(cluster, options))
        self.cluster = cluster
        where, config = find_cluster(cluster, find_settings())
        try:
            self._backend = backends.get(config.backend)(config, self)
        except ArgumentError as error:
            raise ArgumentError(f"{where}: {error}") from error

    @property
    def max_workers(self) -> int:
        """How many jobs that ask for one CPU run at once."""
        return self._backend.max_workers

    @property
    def shares_memory(self) -> bool:
        """Whether jobs run in this process."""
        return self._backend.shares_memory

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`."""
        return self._backend.submit(request)

    def create_actor(self, request: ActorRequest[A]) -> ActorHandle[A]:
        """Make an actor; see `Client`."""
        return self._backend.create_actor(request)

    def resources(self) -> ResourceConfig:
        """What the cluster has in all; see `Client`."""
        return self._backend.resources()

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; see `Client`."""
        self._backend.shutdown(wait=wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shut down and wait; when an error leaves the block, end the jobs first, but for detached ones."""
        self._backend.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"FrayClient(cluster={self.cluster!r})"


def _not_a_name(cluster: object, options: Mapping[str, object]) -> str:
    got = ", ".join([repr(cluster), *(f"{name}={value!r}" for name, value in options.items())])
    return (
        f"FrayClient: expected the name of a cluster and nothing else, got {got}; what a cluster has, such "
        "as a number of workers, stands in a table of treadle.toml, or is given to a client in Python: "
        "ProcessClient(2), ThreadClient(2)"
    )


def find_cluster(name: str, settings: Settings) -> tuple[str, ClusterConfig]:
    """Where the cluster is described, and how.

    Raises:
        UnknownNameError: no such cluster; lists the known.
        ArgumentError: its settings are wrong; names the file and the key.
    """
    clusters = settings.section("clusters")
    if name in clusters:
        where = f"{settings.file}: clusters.{name}"
        return where, read_cluster(where, clusters[name], backends.names())
    if name in BUILT_IN:
        return f"cluster {name}", BUILT_IN[name]
    raise UnknownNameError("cluster", name, {*BUILT_IN, *clusters})
