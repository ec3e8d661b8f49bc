"""Of a worker that was lost: which process it was, and what it had printed and could not send any more."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, NamedTuple, cast

import ray
from ray._private import worker as ray_worker
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from treadle.fray.ray.output import read_piece
from treadle.fray.ray.record import find_record
from treadle.fray.ray.ticket import Piece, Start

LIMIT_S = 10.0
"""How long other machines have to look, in seconds."""


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
    found = find_record(folder, job_id)
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
