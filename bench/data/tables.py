"""The tables, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.data.compare import Score
from bench.data.contender import BATCHES, KEYS, ROWS, SKEWED
from bench.table import Table

TITLES = {
    ROWS: "Map and filter, by functions of one row",
    BATCHES: "Map and filter, by record batches",
    KEYS: "Count by a key of many values",
    SKEWED: "Count by a key of few values",
}
ABOUT = {
    ROWS: "jsonl to jsonl. Each text is brought into NFC, one space between words and lower case; documents "
    "of 20 to 5,000 words are kept, with the number of words.",
    BATCHES: "parquet to parquet (zstd), the same rows as above, without Python for each row.",
    KEYS: "parquet to parquet. How often each of up to 170,000 keys occurs.",
    SKEWED: "parquet to parquet. 201 topics, of which one has three fifths of the documents.",
}
NOTHING = "-"


def case_table(case: str, scores: Sequence[Score], documents: int) -> Table:
    """One case, all contenders; ratios are those of treadle as it is set up in the first row."""
    base = next((each for each in scores if each.contender.is_ours and each.costs), None)
    rows = [_row(each, base, documents) for each in scores if each.costs]
    notes = [f"{each.contender.name}: {each.problem}." for each in scores if each.problem]
    head = (
        "",
        "CPU, s",
        "of it the start",
        "CPU a row, µs",
        "treadle ÷ this, CPU",
        "wall, s",
        "treadle ÷ this, wall",
        "peak, MB",
        "rows out",
    )
    return Table(TITLES[case], f"{documents:,} documents, {ABOUT[case]}", head, rows, notes)


def gain_table(scores: Sequence[Score]) -> Table:
    """What two processes gain over one."""
    by_name = {each.contender.name: each for each in scores if each.costs}
    pairs = (
        ("plain loop", "two plain loops"),
        ("treadle", "treadle, 2 processes"),
        ("datatrove", "datatrove, 2 workers"),
    )
    rows = [
        (
            one,
            *(_short(by_name[each].wall) for each in (one, two)),
            _short(by_name[one].wall / by_name[two].wall),
            _short(by_name[two].cpu / by_name[one].cpu),
        )
        for one, two in pairs
        if one in by_name and two in by_name
    ]
    head = ("", "one, wall s", "two, wall s", "gain", "CPU, two ÷ one")
    about = (
        "Two processes instead of one, over the rows above. What two plain loops gain that know nothing of "
        "each other is what this machine, with its load, allows."
    )
    return Table("Two processes", about, head, rows)


def memory_table(peaks: Mapping[str, tuple[float | None, float | None]], few: int, many: int) -> Table:
    """Peak memory of treadle by the number of documents."""
    rows = [
        (name, *(NOTHING if each is None else f"{each:,.0f}" for each in found))
        for name, found in peaks.items()
    ]
    about = "Peak memory of all processes of treadle, MB."
    return Table("Memory", about, ("", f"{few:,} documents", f"{many:,} documents"), rows)


def settings_table(scores: Sequence[Score], versions: Mapping[str, str]) -> Table:
    """How each was set up."""
    rows = [
        (
            TITLES[each.contender.case],
            each.contender.name,
            versions.get(each.contender.package or "python", NOTHING),
            each.contender.settings,
        )
        for each in scores
    ]
    return Table(
        "Settings of the tools",
        "The version of the loop is that of Python.",
        ("", "", "version", "settings"),
        rows,
        words=4,
    )


def _row(score: Score, base: Score | None, documents: int) -> tuple[str, ...]:
    return (
        score.contender.name,
        _short(score.cpu),
        NOTHING if score.start is None else _short(score.start),
        _micros(score.cpu - (score.start or 0), documents),
        NOTHING if base in (None, score) else f"{base.cpu / score.cpu:.2f}",
        _short(score.wall),
        NOTHING if base in (None, score) else f"{base.wall / score.wall:.2f}",
        f"{score.peak:,.0f}",
        f"{score.digest.rows:,}" if score.digest else NOTHING,
    )


def _micros(seconds: float, documents: int) -> str:
    """What is within the noise of the start is not told."""
    return NOTHING if seconds < 0.1 else f"{seconds / documents * 1e6:,.1f}"


def _short(value: float) -> str:
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"
