"""What runs in a worker, in a file on its machine: who was lost with a killed worker is found there."""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from pathlib import Path

from treadle.fray.ray.ticket import Start

_LENGTH = 4


class Record:
    """The job that has begun last in this process. Written in one act of some microseconds."""

    def __init__(self, folder: str, pid: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(f"{folder}/treadle-{pid}.job", flags, 0o600)

    def write(self, start: Start) -> None:
        """Take the place of what was written before."""
        data = pickle.dumps(tuple(start))
        os.pwrite(self._fd, len(data).to_bytes(_LENGTH, "big") + data, 0)


def find_record(folder: str, job_id: str) -> Start | None:
    """What the process wrote that began the job last, of those on this machine; None when there is none."""
    newest_first = sorted(Path(folder).glob("treadle-*.job"), key=_age)
    for path in newest_first:
        with suppress(OSError, pickle.UnpicklingError, EOFError):
            data = path.read_bytes()
            start = Start(*pickle.loads(data[_LENGTH:]))  # noqa: S301 - written by a worker of this cluster
            if start.job_id == job_id:
                return start
    return None


def _age(path: Path) -> float:
    with suppress(OSError):
        return -path.stat().st_mtime
    return 0.0
