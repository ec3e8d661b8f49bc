"""Rounds in which all contenders of a case take turns; times count when the rows are the same."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.data.contender import Contender
from bench.data.corpus import corpus
from bench.data.digest import Digest, digest
from bench.data.launch import Cost, measure

FEW = 8
"""Documents of the run whose cost is called that of the start."""


@dataclass
class Score:
    """What became of one contender; `start` is the CPU of a run with next to no rows."""

    contender: Contender
    costs: list[Cost] = field(default_factory=list)
    start: float | None = None
    digest: Digest | None = None
    problem: str | None = None

    @property
    def wall(self) -> float:
        """The median, seconds."""
        return statistics.median(each.wall for each in self.costs)

    @property
    def cpu(self) -> float:
        """The median, seconds."""
        return statistics.median(each.cpu for each in self.costs)

    @property
    def peak(self) -> float:
        """The median, MB."""
        return statistics.median(each.peak for each in self.costs)


@dataclass(frozen=True)
class Bench:
    """How all of them are run. `work` is where outputs are written, for a moment."""

    peers: Path
    work: Path | None
    limit: float
    tell: Callable[[str], None]

    def compare(self, chosen: Sequence[Contender], documents: int, rounds: int) -> list[Score]:
        """Rounds in turn, after the run that tells the start."""
        scores = [Score(each) for each in chosen]
        corpus(documents)
        corpus(FEW)
        for score in scores:
            self._start(score)
        for at in range(rounds):
            for score in scores:
                if score.problem is None:
                    self.tell(f"{score.contender.case}, round {at + 1} of {rounds}: {score.contender.name}")
                    self._round(score, documents)
        _judge(scores)
        return scores

    def peak(self, contender: Contender, documents: int) -> float | None:
        """MB of one run; None when it failed."""
        corpus(documents)
        self.tell(f"memory, {documents:,} documents: {contender.name}")
        score = Score(contender)
        self._round(score, documents)
        if score.problem:
            self.tell(score.problem)
        return score.costs[0].peak if score.costs else None

    def _start(self, score: Score) -> None:
        with _folder(self.work) as folder:
            cost = measure(score.contender, FEW, Path(folder), self.peers, self.limit)
        if isinstance(cost, Cost):
            score.start = cost.cpu
        else:
            score.problem = cost

    def _round(self, score: Score, documents: int) -> None:
        with _folder(self.work) as folder:
            cost = measure(score.contender, documents, Path(folder), self.peers, self.limit)
            if isinstance(cost, str):
                score.problem = cost
                return
            found = digest(Path(folder) / "out")
            shutil.rmtree(folder, ignore_errors=True)
        if score.digest not in (None, found):
            score.problem = f"other rows than in the round before: {found.rows}, not {score.digest.rows}"
        score.digest = found
        score.costs.append(cost)


def _folder(work: Path | None) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bench-data-", dir=work, ignore_cleanup_errors=True)


def _judge(scores: Sequence[Score]) -> None:
    """Those whose rows are not the rows of most have no times."""
    known = [score.digest for score in scores if score.digest is not None]
    if not known:
        return
    usual = statistics.mode(known)
    for score in scores:
        if score.digest is not None and score.digest != usual:
            score.problem = f"other rows than most: {score.digest.rows:,}, and the others {usual.rows:,}"
            score.costs.clear()
