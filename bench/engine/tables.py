"""The tables of the cases, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mode

from bench.engine.contender import Contender
from bench.engine.kept import Piece
from bench.engine.threads import THREADS
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
    PREFIX: "64 requests of 512 + 32 tokens, of which the first 512 are the same, 32 greedy tokens each. "
    "What `treadle ÷ this` says of treadle without its prefix cache is what the cache brings.",
}
NOTHING = "-"
_REFERENCES = ("transformers, padded, float32", "vLLM eager, float32")


@dataclass(frozen=True)
class Score:
    """What became of one contender in one case."""

    contender: Contender
    piece: Piece

    @property
    def speed(self) -> float:
        """Output tokens/s, by the median of the seconds."""
        return sum(map(len, self.piece.lines[0]["answers"])) / self.piece.median("seconds")

    def agrees(self, other: Score) -> tuple[int, int]:
        """How many requests of the rounds that both have are answered alike, token for token, of how many."""
        rounds = zip(self.piece.lines, other.piece.lines, strict=False)
        pairs = [
            pair for mine, theirs in rounds for pair in zip(mine["answers"], theirs["answers"], strict=True)
        ]
        return sum(mine == theirs for mine, theirs in pairs), len(pairs)


def case_table(case: str, scores: Sequence[Score], missing: Sequence[str]) -> Table:
    """One case, fastest first; ratios are those of treadle as it is by default, at the same precision."""
    there = sorted((each for each in scores if each.piece.lines), key=lambda each: -each.speed)
    ours = {each.contender.precision: each for each in there if each.contender.is_default}
    known = {each.contender.name: each for each in there}
    reference = next((known[name] for name in _REFERENCES if name in known), None)
    rows = [_row(each, ours, reference) for each in there]
    notes = [f"{each.contender.name}: {each.piece.problem}." for each in scores if each.piece.problem]
    notes += [f"Not run: {'; '.join(missing)}."] if missing else []
    notes += _other_prompts(there)
    head = (
        "",
        "output tokens/s",
        "treadle ÷ this",
        "treadle, int8 ÷ this",
        "first token, s",
        f"answers as {reference.contender.name if reference else 'the reference'}",
    )
    return Table(TITLES[case], ABOUT[case], head, rows, notes)


def loading_table(scores: Sequence[Score], first: Mapping[str, Piece]) -> Table:
    """What it takes before the first request, and how much memory at most."""
    by_name: dict[str, list[Piece]] = {}
    for each in scores:
        if each.piece.lines:
            by_name.setdefault(each.contender.name, []).append(each.piece)
    rows = []
    for name, found in by_name.items():
        load = min(each.median("load") for each in found)
        anew = first[name].median("load") if name in first and first[name].lines else None
        rows.append((name, f"{load:.1f}", _seconds(anew), f"{max(each.peak for each in found):,.0f}"))
    about = (
        "Until the engine could answer, with all that is imported, and the weights in the page cache; and "
        "the same with nothing kept of what was compiled in earlier runs, for one precision of those that "
        "compile. Peak memory is that of all processes of the engine over all cases."
    )
    return Table("Loading and memory", about, ("", "load, s", "the first time, s", "peak, MB"), rows)


def settings_table(contenders: Sequence[Contender], versions: Mapping[str, str]) -> Table:
    """How each was set up."""
    rows = [(each.name, versions.get(each.package, NOTHING), each.settings) for each in contenders]
    return Table(
        "Settings of the engines", f"Threads of each: {THREADS}.", ("", "version", "settings"), rows, words=3
    )


def _row(score: Score, ours: Mapping[str, Score], reference: Score | None) -> tuple[str, ...]:
    same = NOTHING
    if reference is not None and reference is not score:
        alike, count = score.agrees(reference)
        same = f"{alike} of {count}"
    return (
        score.contender.name,
        f"{score.speed:,.0f}",
        _ratio(ours.get(score.contender.precision), score),
        _ratio(ours.get("int8"), score),
        f"{score.piece.median('first'):.2f}",
        same,
    )


def _ratio(one: Score | None, other: Score) -> str:
    return NOTHING if one is None or one is other else f"{one.speed / other.speed:.2f}"


def _other_prompts(scores: Sequence[Score]) -> list[str]:
    """Who was asked something else than most, since its tokenizer cuts the texts in another way."""
    asked = {each.contender.name: each.piece.lines[0]["prompts"] for each in scores}
    usual = mode(asked.values()) if asked else 0
    odd = [name for name, found in asked.items() if found != usual]
    return [f"Other prompts than most: {'; '.join(odd)}."] if odd else []


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"
