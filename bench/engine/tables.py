"""The tables, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.engine.compare import Score
from bench.engine.workload import MANY, ONE, PREFIX
from bench.table import Table

TITLES = {
    MANY: "Many requests at once",
    ONE: "One request alone",
    PREFIX: "Many requests with one beginning",
}
ABOUT = {
    MANY: "64 requests at once, prompts of 16 to 256 tokens of English (6,400 in all), 64 greedy tokens each "
    "(4,096).",
    ONE: "A prompt of 128 tokens, 128 greedy tokens.",
    PREFIX: "64 requests of 512 + 32 tokens, of which the first 512 are the same, 32 greedy tokens each.",
}
NOTHING = "-"


def case_table(case: str, scores: Sequence[Score]) -> Table:
    """One case, fastest first; the ratios are those of the fastest treadle at the same precision."""
    there = sorted((each for each in scores if each.rounds), key=lambda each: each.median("seconds") or 0)
    best = {each.contender.precision: each for each in reversed(there) if each.contender.is_ours}
    reference = next((each for each in there if each.contender.package == "transformers"), None)
    rows = [_row(each, best.get(each.contender.precision), reference) for each in there]
    notes = [f"{each.contender.name}: {each.problem}." for each in scores if each.problem]
    head = (
        "",
        "output tokens/s",
        "treadle ÷ this",
        "first token, s",
        "load, s",
        "peak, MB",
        "answers as transformers, float32",
    )
    return Table(TITLES[case], ABOUT[case], head, rows, notes)


def settings_table(scores: Sequence[Score], versions: Mapping[str, str]) -> Table:
    """How each was set up."""
    names = {each.contender.name: each.contender for each in scores}
    rows = [(name, versions.get(each.package, NOTHING), each.settings) for name, each in names.items()]
    about = "Two threads each. The first token is that of each request, in the mean."
    return Table("Settings of the engines", about, ("", "version", "settings"), rows, words=3)


def _row(score: Score, best: Score | None, reference: Score | None) -> tuple[str, ...]:
    seconds = score.median("seconds") or float("nan")
    generated = sum(map(len, score.rounds[0].answers))
    ratio = seconds / (best.median("seconds") or 1) if best else None
    return (
        score.contender.name,
        f"{generated / seconds:,.0f}",
        NOTHING if ratio is None or best is score else f"{ratio:.2f}",
        _seconds(score.median("first")),
        _seconds(score.median("load")),
        f"{score.median('peak') or 0:,.0f}",
        NOTHING if reference is None else f"{score.agrees(reference)} of {len(score.rounds[0].answers)}",
    )


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"
