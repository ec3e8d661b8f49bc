"""The connection of this process to Ray, which all its clients share: the last one out ends it."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import ray
from ray._private import ray_constants
from ray._private import worker as ray_worker

from treadle.errors import ArgumentError, ClusterError
from treadle.fray.ray.watch import Watch

_lock = threading.RLock()
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass
class Connection:
    """What is connected. `here` says that all workers are on this machine; `ours`, that it ends with us."""

    address: str
    here: bool
    ours: bool
    folder: str | None = None
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
            with _signals_kept():
                ray.shutdown()
        _read_token_again()
        if connection.folder is not None:
            shutil.rmtree(connection.folder, ignore_errors=True)


def _open(address: str | None, local: LocalCluster, timeout: float) -> Connection:
    if ray.is_initialized():
        return Connection(_address_now(), here=_one_node(), ours=False)
    if address is None:
        return _start(local)
    return _connect(address, timeout)


def _start(local: LocalCluster) -> Connection:
    folder = tempfile.mkdtemp(prefix="tr", dir=_short_folder())
    options: dict[str, Any] = {
        "address": "local",
        "num_cpus": local.cpus,
        "num_gpus": local.gpus,
        "resources": local.tags or None,
        "object_store_memory": local.object_store_bytes,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "_temp_dir": folder,
        "_memory": local.memory,
        "_system_config": {"enable_metrics_collection": False},
    }
    if local.spill_dir is not None:
        options["object_spilling_directory"] = local.spill_dir
    try:
        # Ray takes 127.0.0.1 for an address that others reach, and listens on all interfaces, unless this is
        # no node of a larger cluster; RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 says so, but at import only.
        alone = _replaced(ray_constants, "ENABLE_RAY_CLUSTER", False)
        with alone, _environment(_private_token()):
            _read_token_again()
            _init(options)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ClusterError(f"a Ray cluster could not be started on this machine: {error}") from error
    return Connection(_address_now(), here=True, ours=True, folder=folder)


def _connect(address: str, timeout: float) -> Connection:
    check_address(address)
    with _environment(_mode_of(address, timeout)):
        _read_token_again()
        try:
            reaches_out = ray_constants.ENABLE_RAY_CLUSTER and not _on_loopback_only(address)
            with _replaced(ray_constants, "ENABLE_RAY_CLUSTER", reaches_out):
                _init({"address": address})
        except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
            raise ClusterError(
                f"no connection to the Ray cluster at {address!r}: {error}; this machine must be a node of "
                f"it: `ray start --address={address}`"
            ) from error
    return Connection(_address_now(), here=False, ours=True)


def check_address(address: str) -> None:
    """See that the address is one of a head node.

    Raises:
        ArgumentError: it is not.
    """
    host, _, port = address.rpartition(":")
    if address != "auto" and ("://" in address or not host or not port.isdigit()):
        raise ArgumentError(
            f"address: expected HOST:PORT of the head node of a Ray cluster, such as '10.0.0.7:6379', "
            f"or 'auto', got {address!r}"
        )


def _on_loopback_only(address: str) -> bool:
    """Whether the cluster is of this machine alone; Ray would look for it at another address of it."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        return False
    try:
        socket.create_connection((_own_address(), int(port)), timeout=1).close()
    except OSError:
        return True
    return False


def _mode_of(address: str, timeout: float) -> dict[str, str]:
    """The environment variables by which this process speaks to the cluster: its servers ask for a token as
    those of the cluster do, so a token must not be used where the cluster has none."""
    if address == "auto":
        return {}
    try:
        check_answers(address, timeout)
    except ClusterError as error:
        if "token" not in str(error).lower() or "RAY_AUTH_MODE" in os.environ or not _has_token():
            raise
        by_token = {"RAY_AUTH_MODE": "token"}
        check_answers(address, timeout, by_token)
        return by_token
    return {}


def check_answers(address: str, timeout: float, variables: Mapping[str, str] = _NONE) -> None:
    """See that a cluster answers, before Ray is asked: it may wait for minutes, or end the process.

    Raises:
        ClusterError: nothing of Ray answers there in time.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout).close()
    except OSError as error:
        raise _unreachable(address, timeout, str(error)) from error
    code = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1]).get_all_node_info()"
    try:
        subprocess.run(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", code, address],
            timeout=timeout,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
        )
    except subprocess.TimeoutExpired as error:
        told = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else ""
        reason = "it asks for a token" if "InvalidAuthToken" in told else "what listens there is not Ray"
        raise _unreachable(address, timeout, reason) from error
    except subprocess.CalledProcessError as error:
        raise _unreachable(address, timeout, (error.stderr or "").strip().rpartition("\n")[2]) from error


def _unreachable(address: str, timeout: float, reason: str) -> ClusterError:
    return ClusterError(
        f"the Ray cluster at {address!r} does not answer within {timeout:g} s: {reason}; see that it runs "
        "(`ray status --address="
        + address
        + "`), that the address is that of its head node, and that no firewall "
        "is between; where it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    )


def _init(options: dict[str, Any]) -> None:
    logger = logging.getLogger("ray")
    level, handlers, propagate = logger.level, list(logger.handlers), logger.propagate
    with (
        _signals_kept(),
        _replaced(ray_worker, "listen_error_messages", _listen_to_nothing),
        _environment({"RAY_USAGE_STATS_ENABLED": "0"}),
    ):
        try:
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR, configure_logging=True)
        finally:
            logger.setLevel(level)
            logger.handlers[:] = handlers
            logger.propagate = propagate


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray puts a handler of its own in place of that for SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the block, in which other processes are started that inherit them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _replaced(module: Any, name: str, value: object) -> Iterator[None]:
    """A setting of Ray that it reads from its own module only."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _listen_to_nothing(*_: object) -> None:
    """Ray prints on stdout what befalls workers; here that is the error of their job."""


def _private_token() -> dict[str, str]:
    """Others on this machine must not run code in the cluster; the token is told to its processes only."""
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _read_token_again() -> None:
    """Ray reads the environment when it is imported, and keeps the token."""
    with suppress(ImportError, AttributeError):  # older versions of Ray have no tokens
        from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

        AuthenticationTokenLoader.instance().reset_cache()
        Config.initialize("")


def _has_token() -> bool:
    with suppress(ImportError, AttributeError):
        from ray._raylet import AuthenticationTokenLoader  # type: ignore[attr-defined]

        return bool(AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True))
    return False


def _short_folder() -> str:
    """Sockets lie in it, whose paths may have 107 bytes."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 30 else "/tmp"  # noqa: S108 - a folder of our own is made in it


def _address_now() -> str:
    return str(ray.get_runtime_context().gcs_address)


def _one_node() -> bool:
    return len(cast("Any", ray).nodes()) == 1


def _own_address() -> str:
    return str(cast("Any", ray).util.get_node_ip_address())
