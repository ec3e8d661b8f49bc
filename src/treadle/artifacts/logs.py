"""Where the logs of steps are: one file for each step, with the lines of all its attempts.

In a store on a local disk the file lies below `.treadle/logs`. For an object store, whose objects cannot
grow, the lines of an attempt are gathered on this machine and put into the store when the attempt is over.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
from operator import methodcaller
from pathlib import Path

from treadle.artifacts.prefix import is_url, join
from treadle.artifacts.workplace import OWN


def log_file(prefix: str, place: str, run: str, attempt: int) -> str:
    """The local file that the lines of this attempt are appended to."""
    if not is_url(prefix):
        return _whole(prefix, place)
    name = hashlib.sha256(join(prefix, place).encode()).hexdigest()[:16]
    return f"{_local_folder()}/{name}-{run}-{attempt}.log"


def keep_log(prefix: str, place: str, run: str, attempt: int) -> None:
    """The attempt is over: put its lines where `read_log` finds them, if there are any."""
    if not is_url(prefix):  # the lines are in the store already
        return
    local = log_file(prefix, place, run, attempt)
    if os.path.exists(local):  # noqa: PTH110 - every step comes here
        from treadle.storage.reach import path_at, reach

        content, url = Path(local).read_bytes(), f"{_folder(prefix, place)}/{run}-{attempt:04}.log"
        reach(url).ask(lambda fs: fs.pipe_file(path_at(fs, url), content), "write", url)
        Path(local).unlink()


def read_log(prefix: str, place: str) -> str:
    """The lines of all attempts at a step, the oldest first; empty when it said nothing."""
    if not is_url(prefix):
        path = Path(_whole(prefix, place))
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    from treadle.storage.reach import find, path_at, reach

    url = _folder(prefix, place)
    paths = reach(url).ask(lambda fs: sorted(find(fs, path_at(fs, url))), "list", url)
    parts = [reach(url).ask(methodcaller("cat_file", path), "read", url) for path in paths]
    return b"".join(parts).decode("utf-8", errors="replace")


def _folder(prefix: str, place: str) -> str:
    return join(prefix, OWN, "logs", _relative(place))


@functools.cache
def _local_folder() -> str:
    """One for all processes of this user, so that the lines of one that was killed can be kept by another."""
    folder = Path(tempfile.gettempdir(), f"treadle-logs-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():  # somebody else has taken the name
        return tempfile.mkdtemp(prefix="treadle-logs-")
    folder.chmod(0o700)
    return str(folder)


def _whole(prefix: str, place: str) -> str:
    return f"{join(prefix, OWN, 'logs', _relative(place))}.log"


def _relative(place: str) -> str:
    return place.replace("://", "/").lstrip("/")
