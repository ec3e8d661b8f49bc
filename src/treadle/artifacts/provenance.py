"""Where a build comes from: the host, the version of treadle, and the state of the code around the caller."""

from __future__ import annotations

import functools
import hashlib
import socket
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pixi.lock", "constraints.txt", "requirements.txt")


@dataclass(frozen=True, slots=True)
class Provenance:
    """`commit` and `dirty` (SHA-256 of the uncommitted changes) are empty outside a git repository; `lock`
    is the SHA-256 of the lock file, empty without one.
    """

    host: str
    treadle: str
    commit: str
    dirty: str
    lock: str


@functools.lru_cache(maxsize=8)
def capture(run: str) -> Provenance:  # noqa: ARG001 - the code around the caller is looked at once a run
    """The provenance of what the run of that id builds; git is asked once."""
    folder = str(Path.cwd())
    # One call for both: to start git takes longer than all else here.
    commit, root = (*_git(folder, "rev-parse", "HEAD", "--show-toplevel").decode().split("\n"), "", "")[:2]
    changes = _git(folder, "diff", "HEAD") if commit else b""
    return Provenance(
        host=socket.gethostname(),
        treadle=metadata.version("treadle"),
        commit=commit,
        dirty=hashlib.sha256(changes).hexdigest() if changes else "",
        lock=_lock(Path(root or folder)),
    )


def _git(folder: str, *arguments: str) -> bytes:
    """What git says; nothing when there is no git, no repository, or no answer in time."""
    command = ["git", "-C", folder, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)  # noqa: S603 - fixed words
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _lock(root: Path) -> str:
    found = next((root / name for name in _LOCK_FILES if (root / name).is_file()), None)
    return hashlib.sha256(found.read_bytes()).hexdigest() if found else ""
