"""The client of those who have set none: one for each process, made when it is first asked for.

It is threads of this process, unless the environment variable `TREADLE_CLUSTER`, or `cluster = "NAME"` in the
project's settings, names a cluster.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping

from treadle.errors import ArgumentError
from treadle.fray.client import FrayClient
from treadle.fray.protocol import Client
from treadle.settings import find_settings

VARIABLE = "TREADLE_CLUSTER"

_lock = threading.Lock()
_default: Client | None = None
_inherited: list[Client] = []


def default_client() -> Client:
    """The default client of this process. It is shut down at the end of the process, without a wait.

    Raises:
        UnknownNameError: no cluster has the name that is given; lists the known.
        ArgumentError: the name is no text, or the settings of the cluster are wrong.
        MissingExtraError: its backend needs a package that is not installed.
        ClusterError: it cannot be reached.
    """
    global _default
    with _lock:
        if _default is None:
            _default = _made()
        return _default


def _made() -> Client:
    client = FrayClient(default_cluster())
    atexit.register(client.shutdown, wait=False)
    return client


def default_cluster() -> str:
    """The name of the default cluster; "local" where none is given.

    Raises:
        ArgumentError: the name is no text.
    """
    if given := os.environ.get(VARIABLE):
        return given
    settings = find_settings()
    name = settings.table.get("cluster", "local")
    if not isinstance(name, str):
        hint = "; the tables of clusters are [clusters.NAME]" if isinstance(name, Mapping) else ""
        raise ArgumentError(f"{settings.file}: cluster: expected the name of a cluster, got {name!r}{hint}")
    return name


def _after_fork() -> None:
    """The child makes its own. The one it was born with is kept: what it holds belongs to the parent."""
    global _default, _lock
    _lock = threading.Lock()
    if _default is not None:
        atexit.unregister(_default.shutdown)
        _inherited.append(_default)
        _default = None


os.register_at_fork(after_in_child=_after_fork)
