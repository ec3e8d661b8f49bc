"""`FrayClient(cluster)`: a place to run work, by name.

`"local"` is threads of this process. Any other name is a table of the project's settings,
`[clusters.NAME]` in `treadle.toml` or `[tool.treadle.clusters.NAME]` in `pyproject.toml`:

    [clusters.production-cluster]
    backend = "threads"
    max_workers = 16
    cpu = 16
    memory = 64_000_000_000
    gpu = 2
    tags = { licence = 3 }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Self, TypeVar

from treadle.errors import ArgumentError, UnknownNameError
from treadle.fray.protocol import Client, JobHandle, JobRequest
from treadle.fray.resources import ResourceConfig, machine_resources
from treadle.fray.threads import ThreadClient
from treadle.kernel import Registry
from treadle.settings import Settings, find_settings

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterConfig:
    """One cluster; what is None the backend decides. The others are what it has, see `ResourceConfig`."""

    backend: str = "threads"
    max_workers: int | None = None
    cpu: float | None = None
    memory: int | None = None
    gpu: float = 0
    tags: Mapping[str, float] = field(default_factory=dict)


Backend = Callable[[ClusterConfig, Client], Client]
"""Builds what runs the jobs; the second argument is the client that the jobs know it as."""

backends: Registry[Backend] = Registry("fray backend")


def _threads(config: ClusterConfig, face: Client) -> Client:
    has = machine_resources(cpu=config.cpu, memory=config.memory, gpu=config.gpu, tags=config.tags)
    return ThreadClient(config.max_workers, resources=has, known_as=face)


backends.register("threads", _threads)


class FrayClient:
    """A client for the cluster of that name.

    Raises:
        UnknownNameError: no such cluster, or its backend is unknown; lists the known.
        ArgumentError: its settings are wrong; names the file and the key.
    """

    def __init__(self, cluster: str = "local") -> None:
        self.cluster = cluster
        where, config = _find_cluster(cluster, find_settings())
        build = backends.get(config.backend)
        try:
            self._backend = build(config, self)
        except ArgumentError as error:
            raise ArgumentError(f"{where}: {error}") from error

    def submit(self, request: JobRequest[T]) -> JobHandle[T]:
        """Hand over one job; see `Client`."""
        return self._backend.submit(request)

    def resources(self) -> ResourceConfig:
        """What the cluster has in all; see `Client`."""
        return self._backend.resources()

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more jobs; see `Client`."""
        self._backend.shutdown(wait=wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"FrayClient(cluster={self.cluster!r})"


def _find_cluster(name: str, settings: Settings) -> tuple[str, ClusterConfig]:
    """Where the cluster is described, and how."""
    clusters = settings.section("clusters")
    where = f"{settings.file}: clusters.{name}"
    if name in clusters:
        return where, _config(where, clusters[name])
    if name == "local":
        return "cluster local", ClusterConfig()
    raise UnknownNameError("cluster", name, {"local", *clusters})


def _config(where: str, table: object) -> ClusterConfig:
    if not isinstance(table, Mapping):
        raise ArgumentError(f"{where}: expected a table, got {table!r}")
    known = [each.name for each in fields(ClusterConfig)]
    for key in table:
        if key not in known:
            raise UnknownNameError(f"key of {where}", key, known)
    if not isinstance(found := table.get("backend"), str):
        raise ArgumentError(f"{where}: backend: expected one of {', '.join(backends.names())}, got {found!r}")
    return ClusterConfig(**table)
