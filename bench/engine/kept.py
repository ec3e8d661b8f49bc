"""What was found out is kept in a folder, so that a long run can be done in pieces."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.engine.job import Job
from bench.engine.launch import Said


@dataclass(frozen=True)
class Piece:
    """What one job told of one part.

    Attributes:
        part, name: of what.
        lines: what it said: one for each round or row.
        problem: why it did not come to its end.
        peak: MB of all its processes, over all parts that it told of.
        day: when.
        others: cores that processes of others kept busy meanwhile, in the mean.
    """

    part: str
    name: str
    lines: list[dict[str, Any]]
    problem: str | None
    peak: float
    day: str
    others: float

    def median(self, figure: str) -> float:
        """Of a figure over the lines."""
        return float(statistics.median(each[figure] for each in self.lines))


def pieces(job: Job, said: Said) -> Iterator[Piece]:
    """One for each part of the job; what it had told before it failed counts."""
    for part in job.parts:
        lines = [each for each in said.lines if each["part"] == part]
        problem = None if lines else said.problem or "it said nothing"
        yield Piece(part, job.name, lines, problem, said.peak, time.strftime("%Y-%m-%d"), said.others)


@dataclass(frozen=True)
class Kept:
    """A file for each piece."""

    folder: Path

    def put(self, piece: Piece) -> None:
        """Keep it in the place of an earlier one."""
        path = self._path(piece.part, piece.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(piece)))

    def get(self, job: Job) -> list[Piece]:
        """The pieces of a job that are there."""
        paths = (self._path(part, job.name) for part in job.parts)
        return [Piece(**json.loads(path.read_text())) for path in paths if path.exists()]

    def _path(self, part: str, name: str) -> Path:
        return self.folder / part / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.json"
