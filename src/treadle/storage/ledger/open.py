"""Which kind of ledger a store has, and how long its leases live."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Protocol

from treadle.storage.ledger.fork import reset_after_fork
from treadle.storage.ledger.memory import MemoryLedger
from treadle.storage.ledger.mounts import is_shared_by_machines
from treadle.storage.ledger.protocol import Ledger
from treadle.storage.ledger.sqlite import SqliteLedger
from treadle.storage.seconds import seconds_setting

_LEASE_SECONDS = 30.0


class _Opened(Ledger, Protocol):
    def is_present(self) -> bool: ...


class _Ledgers:
    """The ledgers of this process, by store and time to live."""

    def __init__(self) -> None:
        self.reset()
        reset_after_fork(self)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, float], _Opened] = {}

    def find(self, prefix: str, ttl: float) -> Ledger:
        with self._lock:
            ledger = self._open.get((prefix, ttl))
            if ledger is None or not ledger.is_present():
                ledger = self._open[prefix, ttl] = _make(prefix, ttl)
            return ledger

    def close(self, prefix: str) -> None:
        with self._lock:
            keys = [key for key in self._open if key[0] == prefix]
            ledgers = [self._open.pop(key) for key in keys]
        for each in ledgers:
            each.close()


_LEDGERS = _Ledgers()


def open_ledger(prefix: str, *, lease_seconds: float | None = None) -> Ledger:
    """The ledger of the store at `prefix`, a folder or an fsspec URL; nothing is made or read yet.

    One for all threads of a process. SQLite on a local disk; objects on an object store and on a disk that
    several machines share; memory for `memory://`.

    `lease_seconds` is how long a claim outlives the last sign of life of its owner: the argument, else
    the environment's `TREADLE_LEASE_SECONDS`, else `lease_seconds` of the project's settings, else 30.

    Raises:
        ArgumentError: `lease_seconds` is no positive number.
        MissingExtraError: the package for this kind of URL is not installed.
    """
    return _LEDGERS.find(_plain(prefix), seconds_setting("lease_seconds", _LEASE_SECONDS, lease_seconds))


def close_ledger(prefix: str) -> None:
    """Close and forget the ledger of the store at `prefix`; what is only in memory is gone then.

    One that has claims goes on with them until they end. `open_ledger` makes a new one.

    Raises:
        LedgerError: as `Ledger.close`.
    """
    _LEDGERS.close(_plain(prefix))


def _plain(prefix: str) -> str:
    protocol, mark, rest = prefix.partition("://")
    if mark and protocol not in ("file", "local"):
        return prefix.rstrip("/") if rest.strip("/") else prefix
    return os.path.abspath(rest if mark else prefix)  # noqa: PTH100 - pathlib keeps the `..`


def _make(prefix: str, ttl: float) -> _Opened:
    protocol, mark, _ = prefix.partition("://")
    if mark and protocol == "memory":
        return MemoryLedger(prefix)
    if not mark and not is_shared_by_machines(prefix):
        return SqliteLedger(str(Path(prefix, ".treadle", "ledger.db")), ttl)
    # fsspec takes a tenth of a second to load, which a local store need not wait for.
    from treadle.storage.ledger.objects import ObjectLedger

    return ObjectLedger(prefix, ttl)
