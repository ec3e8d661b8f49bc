"""The tables, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.dag.compare import COLD, WARM, Score
from bench.dag.contenders import floor
from bench.dag.measures.measure import Measure, Row
from bench.table import Table

NOTHING = "-"


def shape_table(shape: str, steps: int, scores: Sequence[Score]) -> Table:
    """One graph, all contenders."""
    by_name = {each.contender.name: each for each in scores}
    bare, kept = by_name.get(floor.BARE.name), by_name.get(floor.KEPT.name)
    rows = [
        (
            _marked(score, shape, steps),
            _time(score, shape, COLD),
            _time(score, shape, WARM),
            _ratio(score, bare, shape, COLD),
            _ratio(score, kept, shape, COLD),
            _ratio(score, kept, shape, WARM),
            str(len(score.times.get((shape, COLD), ()))),
        )
        for score in scores
        if score.skipped is None
    ]
    head = (
        "",
        "cold, ms",
        "warm, ms",
        "cold ÷ bare floor",
        "cold ÷ pickle floor",
        "warm ÷ pickle floor",
        "runs",
    )
    about = f"{steps:,} steps. Milliseconds a step: the median, in brackets the best."
    return Table(shape, about, head, rows, _reductions(shape, steps, scores))


def settings_table(scores: Iterable[Score]) -> Table:
    """What each contender was asked to do, and why some are not here."""
    rows = [
        (
            score.contender.name,
            score.version,
            score.contender.keeps,
            score.contender.settings if score.skipped is None else f"skipped: {score.skipped}",
            "; ".join(score.notes) if score.skipped is None else "",
        )
        for score in scores
    ]
    head = ("", "version", "keeps", "settings", "remarks")
    return Table("Settings", "The version of the floor is that of Python.", head, rows, words=5)


def measure_table(measure: Measure, rows: Sequence[Row], problem: str | None) -> Table:
    """The rows of one measure as they came."""
    return Table.of(measure.name, measure.about, rows, (f"Ended early: {problem}.",) if problem else ())


def _marked(score: Score, shape: str, steps: int) -> str:
    return score.contender.name + ("" if score.steps.get(shape, steps) == steps else " †")


def _reductions(shape: str, steps: int, scores: Iterable[Score]) -> Sequence[str]:
    small = {score.steps[shape] for score in scores if score.steps.get(shape, steps) != steps}
    return [
        f"† {each:,} steps instead, since it takes long; `--full` gives it all of them." for each in small
    ]


def _time(score: Score, shape: str, state: str) -> str:
    median, best = score.median(shape, state), score.best(shape, state)
    if median is None or best is None:
        return NOTHING if not score.contender.warm and state == WARM else "not done"
    return f"{_short(median)} ({_short(best)})"


def _ratio(score: Score, other: Score | None, shape: str, state: str) -> str:
    mine, base = score.median(shape, state), other.median(shape, state) if other else None
    return NOTHING if mine is None or not base else _short(mine / base)


def _short(value: float) -> str:
    """Two figures, as many as such times deserve."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
