"""The connection of this process to Ray, which all its clients share: the last one out ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import ray
from ray._private import ray_constants
from ray._private import worker as ray_worker

from treadle.errors import ArgumentError, ClusterError
from treadle.fray.checks import check_count
from treadle.fray.ray.probe import check_address, found_address, mode_of, on_loopback_only
from treadle.fray.ray.ray_init import (
    environment,
    init_quietly,
    patched,
    private_token,
    read_token_again,
    signals_kept,
)
from treadle.fray.ray.session_folder import SessionFolder
from treadle.fray.ray.watch import Watch
from treadle.fray.resources import ResourceConfig

_lock = threading.RLock()


@dataclass
class Connection:
    """What is connected. `here` says that all workers are on this machine; `ours`, that it ends with us."""

    address: str
    here: bool
    ours: bool
    folder: SessionFolder | None = None
    users: int = 0
    lost: str = ""
    watch: Watch | None = None
    told: list[Callable[[str], object]] = field(default_factory=list)

    def begin_watch(self) -> None:
        """Tell the clients when the cluster is gone."""
        raylet = str(cast("Any", ray_worker)._global_node.raylet_socket_name)
        self.watch = Watch(self.address, raylet, self._lose)

    def _lose(self, what: str) -> None:
        self.lost = what
        for tell in tuple(self.told):
            tell(what)


_current: Connection | None = None


@dataclass(frozen=True)
class LocalCluster:
    """What a cluster that is started here has; None leaves it to Ray."""

    cpus: int | None
    gpus: float | None
    memory: int | None
    tags: dict[str, float]
    object_store_bytes: int | None
    spill_dir: str | None


def local_cluster(
    max_workers: int | None, resources: ResourceConfig | None, store: int | None, spill_dir: str | None
) -> LocalCluster:
    """What to start; see `RayClient`.

    Raises:
        ArgumentError: an amount is wrong.
    """
    if max_workers is not None:
        check_count("max_workers", max_workers)
    if store is not None:
        check_count("object_store_bytes", store)
    if resources is None:
        return LocalCluster(max_workers, None, None, {}, store, spill_dir)
    cpus = int(resources.cpu) if max_workers is None else max_workers
    return LocalCluster(cpus, resources.gpu, resources.memory or None, dict(resources.tags), store, spill_dir)


def join(address: str | None, local: LocalCluster, timeout: float) -> Connection:
    """Use the connection that there is, connect to `address`, or start a cluster on this machine.

    Raises:
        ClusterError: nothing usable answers there in time.
        ArgumentError: this process is connected to another cluster already.
    """
    global _current
    with _lock:
        if _current is None or not ray.is_initialized():
            _current = _open(address, local, timeout)
            _current.begin_watch()
        elif address is not None and address != _current.address:
            raise ArgumentError(
                f"address: this process is connected to the Ray cluster {_current.address} already, and Ray "
                f"allows for one at a time; got {address!r}: shut the other client down first"
            )
        _current.users += 1
        return _current


def leave(connection: Connection) -> None:
    """A client is done; the last one ends the connection, if it was opened here."""
    global _current
    with _lock:
        connection.users -= 1
        if connection.users:
            return
        if connection.watch is not None:
            connection.watch.close()
        _current = None
        if not connection.ours:
            return
        if ray.is_initialized():
            with signals_kept():
                ray.shutdown()
        read_token_again()
        if connection.folder is not None:
            connection.folder.remove()


def _open(address: str | None, local: LocalCluster, timeout: float) -> Connection:
    if ray.is_initialized():
        return Connection(_address_now(), here=_one_node(), ours=False)
    if address is None:
        return _start(local)
    return _connect(address, timeout)


def _start(local: LocalCluster) -> Connection:
    folder = SessionFolder()
    options: dict[str, Any] = {
        "address": "local",
        "num_cpus": local.cpus,
        "num_gpus": local.gpus,
        "resources": local.tags or None,
        "object_store_memory": local.object_store_bytes,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "_temp_dir": folder.path,
        "_memory": local.memory,
        "_system_config": {"enable_metrics_collection": False},
    }
    if local.spill_dir is not None:
        options["object_spilling_directory"] = local.spill_dir
    try:
        # Ray takes 127.0.0.1 for an address that others reach, and listens on all interfaces, unless this is
        # no node of a larger cluster; RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 says so, but at import only.
        alone = patched(ray_constants, "ENABLE_RAY_CLUSTER", False)
        with alone, environment(private_token()):
            read_token_again()
            init_quietly(options)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        folder.remove()
        raise ClusterError(f"a Ray cluster could not be started on this machine: {error}") from error
    return Connection(_address_now(), here=True, ours=True, folder=folder)


def _connect(address: str, timeout: float) -> Connection:
    check_address(address)
    address = found_address(address)
    with environment(mode_of(address, timeout)):
        read_token_again()
        try:
            reaches_out = ray_constants.ENABLE_RAY_CLUSTER and not on_loopback_only(address)
            with patched(ray_constants, "ENABLE_RAY_CLUSTER", reaches_out):
                init_quietly({"address": address})
        except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
            raise ClusterError(
                f"no connection to the Ray cluster at {address!r}: {error}; this machine must be a node of "
                f"it: `ray start --address={address}`"
            ) from error
    return Connection(_address_now(), here=False, ours=True)


def _address_now() -> str:
    return str(ray.get_runtime_context().gcs_address)


def _one_node() -> bool:
    return len(cast("Any", ray).nodes()) == 1
