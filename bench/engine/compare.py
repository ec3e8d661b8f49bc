"""Rounds of all contenders of a case, each contender a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.engine.contender import Contender
from bench.places import ROOT


@dataclass(frozen=True)
class Round:
    """Seconds to load, for all answers, and to a first token in the mean (None: untold); MB at the peak."""

    load: float
    seconds: float
    first: float | None
    peak: float
    answers: list[list[int]]


@dataclass
class Score:
    """What became of one contender."""

    contender: Contender
    rounds: list[Round] = field(default_factory=list)
    problem: str | None = None

    def median(self, name: str) -> float | None:
        """Of a figure over the rounds; None when it is not told."""
        found = [value for each in self.rounds if (value := getattr(each, name)) is not None]
        return statistics.median(found) if found else None

    def agrees(self, other: Score) -> int:
        """How many requests have the same answer, token for token."""
        pairs = zip(self.rounds[0].answers, other.rounds[0].answers, strict=True)
        return sum(mine == theirs for mine, theirs in pairs)


@dataclass(frozen=True)
class Bench:
    """How all of them are run: the interpreter of the peers, seconds for one process, where to say what."""

    peers: Path
    limit: float
    tell: Callable[[str], None]

    def compare(self, case: str, chosen: Sequence[Contender], rounds: int) -> list[Score]:
        """All contenders of a case in turn; the rounds of one share a process, since loading is dear."""
        return [self._score(case, each, rounds) for each in chosen]

    def _score(self, case: str, contender: Contender, rounds: int) -> Score:
        self.tell(f"{case}: {contender.name}")
        python = self.peers / "bin" / "python" if contender.is_peer else Path(sys.executable)
        if not python.exists():
            return Score(
                contender, problem=f"no environment of peers at {self.peers}: make bench-engine sets it up"
            )
        words = [python, "-m", "bench.engine.child", contender.name, case, str(rounds)]
        with tempfile.TemporaryFile("w+") as said:
            try:
                done = subprocess.run(
                    words,
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    text=True,
                    timeout=self.limit,
                    env=_environment(contender),
                )
            except subprocess.TimeoutExpired:
                return Score(contender, problem=f"more than {self.limit:.0f} s")
            if done.returncode:
                said.seek(0)
                return Score(contender, problem=f"exit code {done.returncode}: {_last_line(said.read())}")
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"load"')]
        return Score(contender, [Round(**json.loads(line)) for line in lines])


def _environment(contender: Contender) -> dict[str, str]:
    environment: dict[str, Any] = {**os.environ, "OMP_NUM_THREADS": "2"}
    if contender.is_peer:
        environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'src'}"
    return environment


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "it said nothing")
