"""Of a worker that was lost: which process it was, and what it had printed and could not send any more."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import ray
from ray._private import worker as ray_worker
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from treadle.fray.ray.output import read_piece
from treadle.fray.ray.ticket import Piece, Start

_LENGTH = 4

LIMIT_S = 10.0
"""How long other machines have to look, in seconds."""


class Record:
    """The job that has begun last in this process, in a file on its machine, where it outlives the process.

    It is written in one act of some microseconds.
    """

    def __init__(self, folder: str, pid: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(f"{folder}/treadle-{pid}.job", flags, 0o600)

    def write(self, start: Start) -> None:
        """Take the place of what was written before."""
        data = pickle.dumps(tuple(start))
        os.pwrite(self._fd, len(data).to_bytes(_LENGTH, "big") + data, 0)


class LastWords(NamedTuple):
    """Where the job had begun, and the rest of its output."""

    start: Start
    pieces: tuple[Piece, ...]


def last_words(job_id: str, start: Start | None) -> LastWords | None:
    """What is known of the job whose worker was lost; `start` is what its board knows.

    None when nobody knows anything, such as when its machine is gone too.
    """
    found = look(job_id, start)
    if found is None:
        here = ray.get_runtime_context().get_node_id()
        others = [each["NodeID"] for each in _nodes() if each["Alive"] and each["NodeID"] != here]
        if start is not None:
            others = [each for each in others if each == start.node_id]
        found = _look_there(job_id, start, others)
    return found or (None if start is None else LastWords(start, ()))


def look(job_id: str, start: Start | None) -> LastWords | None:
    """Look on this machine."""
    folder = cast("Any", ray_worker)._global_node.get_logs_dir_path()
    found = _find_record(folder, job_id)
    if found is None:
        return None
    if start is not None and start.pid == found.pid:  # the board knows how much of the output it has
        found = start
    pieces = (
        (kind, read_piece(path, reached)) for kind, path, reached in found.output if Path(path).exists()
    )
    return LastWords(found, tuple((kind, piece) for kind, piece in pieces if piece))


def _look_there(job_id: str, start: Start | None, nodes: Iterable[str]) -> LastWords | None:
    answers: list[Future[LastWords | None]] = []
    for node in nodes:
        there = NodeAffinitySchedulingStrategy(node, soft=False)
        answers.append(_look.options(scheduling_strategy=there).remote(job_id, start).future())
    for answer in wait(answers, LIMIT_S).done:
        if answer.exception() is None and (found := answer.result()) is not None:
            return found
    return None


_look = ray.remote(num_cpus=0, max_retries=0)(look)


def _nodes() -> list[dict[str, Any]]:
    return cast("Any", ray).nodes()  # type: ignore[no-any-return]


def _find_record(folder: str, job_id: str) -> Start | None:
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
