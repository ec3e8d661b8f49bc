"""What a cluster is, as the settings of a project describe it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from treadle.errors import ArgumentError, UnknownNameError
from treadle.fray.environment import EnvironmentConfig
from treadle.fray.parcel import LARGEST_RESULT


@dataclass(frozen=True)
class ClusterConfig:
    """One cluster; what is None the backend decides.

    `cpu`, `memory`, `gpu` and `tags` are what it has, see `ResourceConfig`. `address` is where a Ray cluster
    runs already; it is waited for `connect_timeout` seconds. `environment` is that of jobs that ask for none,
    see `EnvironmentConfig`. A result of a job has at most `max_result_bytes`. A Ray cluster that is started
    here keeps at most `object_store_bytes` of objects in memory, and spills the others to `spill_dir`.
    """

    backend: str = "threads"
    max_workers: int | None = None
    cpu: float | None = None
    memory: int | None = None
    gpu: float = 0
    tags: Mapping[str, float] = field(default_factory=dict)
    address: str | None = None
    connect_timeout: float = 10.0
    environment: Mapping[str, Any] = field(default_factory=dict)
    max_result_bytes: int = LARGEST_RESULT
    object_store_bytes: int | None = None
    spill_dir: str | None = None

    @property
    def says_what_it_has(self) -> bool:
        """Whether an amount is given, so that it is not only what is found there."""
        return self.cpu is not None or self.memory is not None or bool(self.gpu) or bool(self.tags)


_ONLY: Mapping[str, Sequence[str]] = {
    "address": ("ray",),
    "connect_timeout": ("ray",),
    "object_store_bytes": ("ray",),
    "spill_dir": ("ray",),
    "max_result_bytes": ("processes", "ray"),
}
"""Keys that mean nothing to other backends of ours; one that somebody else has registered may use them."""

_OURS = ("processes", "ray", "threads")


def read_cluster(where: str, table: object, backends: Sequence[str]) -> ClusterConfig:
    """The cluster of a settings table; `where` is the file and the path in it, `backends` are the known.

    Raises:
        ArgumentError: a value is wrong, or a key means nothing to the backend; names the file and the key.
        UnknownNameError: a key or the backend is unknown; lists the known.
    """
    table = _as_table(where, table)
    _check_keys(f"key of {where}", table, [each.name for each in fields(ClusterConfig)])
    backend = table.get("backend")
    if not isinstance(backend, str):
        raise ArgumentError(f"{where}: backend: expected one of {', '.join(backends)}, got {backend!r}")
    if backend not in backends:
        raise UnknownNameError(f"backend of {where}", backend, backends)
    for key, value in table.items():
        if backend in _OURS and backend not in _ONLY.get(key, _OURS):
            raise ArgumentError(f"{where}: {key}: only for {' or '.join(_ONLY[key])}, not for {backend}")
        _check_value(f"{where}: {key}", key, value)
    return ClusterConfig(**table)


def _as_table(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{where}: expected a table, got {value!r}")
    return value


def _check_keys(kind: str, table: Mapping[str, object], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            raise UnknownNameError(kind, key, known)


def _check_value(where: str, key: str, value: object) -> None:
    """Amounts and numbers of workers are checked where they are used."""
    if key == "environment":
        _check_environment(where, value)
    elif key in _EXPECTED:
        expected, fits = _EXPECTED[key]
        if not fits(value):
            raise ArgumentError(f"{where}: expected {expected}, got {value!r}")


def _check_environment(where: str, value: object) -> None:
    table = _as_table(where, value)
    _check_keys(f"key of {where}", table, [each.name for each in fields(EnvironmentConfig)])
    try:
        EnvironmentConfig(**table)
    except ArgumentError as error:
        raise ArgumentError(f"{where.removesuffix('environment')}{error}") from error


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


_EXPECTED: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "address": ("host:port as text", _is_text),
    "spill_dir": ("a folder as text", _is_text),
    "connect_timeout": ("a number of seconds above 0", _is_time),
    "max_result_bytes": ("a whole number of at least 1", _is_count),
    "object_store_bytes": ("a whole number of at least 1", _is_count),
}
