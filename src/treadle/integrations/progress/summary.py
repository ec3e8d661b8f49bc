"""The table at the end of a run: what this run did, what others did, what went wrong."""

from __future__ import annotations

import heapq
from collections import Counter

from rich.text import Text

from treadle.integrations.graph.model import duration
from treadle.integrations.progress.columns import Cell, aligned
from treadle.integrations.progress.state import End, Word

ROWS = 40
"""Steps that the table names; of a larger run those that failed or were skipped, and the longest."""
LONGEST = 10

STYLES = {
    Word.DONE: "green",
    Word.ELSEWHERE: "cyan",
    Word.CACHED: "dim",
    Word.FAILED: "bold red",
    Word.CANCELLED: "yellow",
    Word.SKIPPED: "yellow",
}
_NOT_DONE = (Word.FAILED, Word.CANCELLED, Word.SKIPPED)


class Summary:
    """Gathers ends; of very many it keeps no more than the table has room for."""

    def __init__(self) -> None:
        self._count = 0
        self._cached = 0
        self._first: list[End] = []
        self._lost: dict[Word, list[End]] = {word: [] for word in _NOT_DONE}
        self._longest: list[tuple[float, int, End]] = []

    def add(self, end: End) -> None:
        """One more step has ended."""
        if end.word is Word.CACHED:
            self._cached += 1
            return
        self._count += 1
        if len(self._first) < ROWS:
            self._first.append(end)
        if end.word not in self._lost:
            heapq.heappush(self._longest, (end.seconds, -self._count, end))
            if len(self._longest) > LONGEST:
                heapq.heappop(self._longest)
        elif len(self._lost[end.word]) < ROWS:
            self._lost[end.word].append(end)

    def rows(self) -> list[End]:
        """All of them in their order; of more than `ROWS` what was lost, then the longest."""
        if self._count <= ROWS:
            return self._first
        longest = [end for _, _, end in sorted(self._longest, key=lambda each: each[:2], reverse=True)]
        lost = [end for word in _NOT_DONE for end in self._lost[word]]
        return [*lost[: ROWS - len(longest)], *longest]

    def table(self, width: int) -> Text:
        """The rows, for a terminal or a log that is so wide; those that were cached are one row."""
        shown = self.rows()
        rows: list[tuple[Cell, ...]] = [
            tuple(Text(each, "bold") for each in ("step", "outcome", "time", "why"))
        ]
        rows += (_row(each) for each in shown)
        if self._cached:
            cached = Text(Word.CACHED.value, STYLES[Word.CACHED])
            rows.append((Text(steps(self._cached), "dim"), cached, "", ""))
        if (more := self._count - len(shown)) > 0:
            rows.append((Text(f"and {more:,} more", "dim"), "", "", ""))
        if not any(each.why for each in shown):
            rows = [row[:-1] for row in rows]
        return aligned(rows, (2,), width)


def _row(end: End) -> tuple[Cell, ...]:
    word = Text(end.word.value, STYLES[end.word])
    return label(end.id, end.name, end.label), word, took(end), end.why


def label(step_id: str, name: str, told: str = "") -> Text:
    """The id of a step, with what follows its name set back, and what tells it from others of that name."""
    rest = step_id.removeprefix(name)
    text = Text(name).append(rest, style="dim") if rest != step_id else Text(step_id)
    return text.append(f" ({told})", style="dim") if told else text


def took(end: End) -> str:
    """Its time, if it took any here."""
    return duration(end.seconds) if end.word in (Word.DONE, Word.FAILED, Word.CANCELLED) else ""


def counted(counts: Counter[Word]) -> str:
    """How many ended how, in the order of the words."""
    return ", ".join(f"{counts[word]:,} {word.value}" for word in Word if counts[word])


def steps(count: int) -> str:
    """So many steps."""
    return "1 step" if count == 1 else f"{count:,} steps"
