"""The comparison: repetitions of all contenders in turn, so that noise of the machine hits all alike."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.dag.contender import Contender
from bench.dag.launch import Answers, ask, python_of

COLD, WARM = "cold", "warm"


@dataclass
class Score:
    """What became of one contender: (shape, state) -> milliseconds a step of each repetition."""

    contender: Contender
    version: str = ""
    skipped: str | None = None
    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    spent: float = 0.0

    def median(self, shape: str, state: str) -> float | None:
        """Milliseconds a step."""
        times = self.times.get((shape, state))
        return statistics.median(times) if times else None

    def best(self, shape: str, state: str) -> float | None:
        """Milliseconds a step."""
        return min(self.times.get((shape, state), ()), default=None)


def compare(
    contenders: Iterable[Contender],
    runs: int,
    *,
    full: bool,
    limit: float,
    peer_seconds: float,
    tell: Callable[[str], None],
) -> list[Score]:
    """`runs` repetitions of each; a peer that has used `peer_seconds` gets no more of them."""
    scores = [Score(each) for each in contenders]
    for at in range(runs):
        for score in scores:
            if score.skipped is None and (score.spent < peer_seconds or not score.contender.is_peer):
                tell(f"run {at + 1} of {runs}: {score.contender.name}")
                _repeat(score, full=full, limit=limit)
    return scores


def _repeat(score: Score, *, full: bool, limit: float) -> None:
    if not python_of(score.contender.is_peer).exists():
        score.skipped = "no environment of peers: python -m bench.dag.peers --install"
        return
    with tempfile.TemporaryDirectory(prefix="bench-dag-", ignore_cleanup_errors=True) as folder:
        for state in (COLD, WARM) if score.contender.warm else (COLD,):
            words = ["run", score.contender.name, state, folder, *(["--full"] if full else [])]
            answers = ask(words, Path(folder), limit, is_peer=score.contender.is_peer)
            score.spent += answers.seconds
            if score.skipped is None:
                _take_up(score, state, answers)


def _take_up(score: Score, state: str, answers: Answers) -> None:
    for line in answers.lines:
        score.version = line.get("version", score.version)
        score.skipped = line.get("missing", score.skipped)
        if "error" in line:
            score.notes[f"{line['shape']}: {line['error']}"] = None
        elif "seconds" in line:
            _take_up_time(score, state, line["shape"], line["steps"], line["seconds"], line["ran"])
    if answers.problem:
        done = sum("shape" in line for line in answers.lines)
        score.notes[f"{state}: {answers.problem}, {done} of 3 graphs done"] = None
    elif not score.times and score.skipped is None:
        score.skipped = next(iter(score.notes), "no answer")


def _take_up_time(score: Score, state: str, shape: str, steps: int, seconds: float, ran: int | None) -> None:
    if state == WARM and (shape, COLD) not in score.times:
        return  # the cold run did not come to its end, so this one is no warm run
    score.times.setdefault((shape, state), []).append(seconds / steps * 1e3)
    score.steps[shape] = steps
    expected = steps if state == COLD else 0
    if ran is not None and ran != expected:
        score.notes[f"{shape}, {state}: {ran} bodies ran, expected {expected}"] = None
