"""Which process this is, and whether the process of an owner is gone."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from treadle.storage.ledger.protocol import Owner


def this_owner(run: str) -> Owner:
    """This process as the owner of a lease, from now on."""
    pid = os.getpid()
    host, machine, started = _facts(pid)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Owner(run, host, pid, since, machine, started)


def is_gone(owner: Owner) -> bool:
    """Whether the owner was a process of this machine and has ended. False where that cannot be told."""
    if not owner.machine or owner.machine != _machine():
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _state(owner.pid) not in (None, ("alive", owner.process_started))


# By process, because a fork has another.
@lru_cache(maxsize=1)
def _facts(pid: int) -> tuple[str, str, int]:
    state = _state(pid)
    return socket.gethostname(), _machine() if state else "", state[1] if state else 0


@lru_cache(maxsize=1)
def _machine() -> str:
    """The boot and the process namespace, within which a process number means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _state(pid: int) -> tuple[str, int] | None:
    """Whether a process lives, and its start in clock ticks since boot; None when it cannot be seen."""
    # Not psutil's time of creation, which moves when the clock of the machine is set.
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return ("ended" if fields[0] in "ZX" else "alive"), int(fields[19])
