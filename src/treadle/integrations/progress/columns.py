"""Rows as aligned columns that fit a width.

What is too long folds at spaces and after `/`; inside of a word only where that word alone is too long.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from rich.cells import cell_len
from rich.text import Text

Cell: TypeAlias = str | Text

GAP = "  "
_WORD = re.compile(r"\S+|\s+")
_PIECE = re.compile(r"[^\s/]*/+|[^\s/]+|\s+")
_WHOLE = 44  # so long a word, such as the id of a run or a step with a long name, is not broken
_NARROW = len("2026-01-01 00:00:00")
_LEAST = 8


def aligned(rows: Sequence[Sequence[Cell]], right: Collection[int], width: int) -> Text:
    """The rows as one text of whole lines; the columns numbered in `right` are aligned there.

    Of ten thousand rows, a table of rich would take seconds.
    """
    widths = [max(map(_length, column)) for column in zip(*rows, strict=True)]
    room = width - len(GAP) * (len(widths) - 1)
    fits = sum(widths) <= room
    if not fits:
        widths = _narrowed(rows, widths, room)
    text = Text()
    for row in rows:
        for line in [row] if fits else _lines(row, widths):
            _append(text, line, widths, right)
    return text


def fold(cell: Cell, width: int) -> list[Cell]:
    """The lines of a cell, none longer than `width`."""
    plain = _plain(cell)
    if cell_len(plain) <= width:
        return [cell]
    lines: list[Cell] = []
    start = end = 0
    for first, last in _pieces(plain, width):
        if cell_len(plain[start:last].rstrip()) > width:
            lines.append(cell[start : start + len(plain[start:end].rstrip())])
            start = last if plain[first:last].isspace() else first
        end = last
    return [*lines, cell[start:]] if start < len(plain) else lines


def _pieces(plain: str, width: int) -> Iterator[tuple[int, int]]:
    """Where a line may end: between words; in one that is too long after `/`, or where it has to."""
    for word in _WORD.finditer(plain):
        is_long = cell_len(word[0]) > width
        for match in _PIECE.finditer(plain, *word.span()) if is_long else [word]:
            starts = range(match.start(), match.end(), width)
            yield from ((start, min(start + width, match.end())) for start in starts)


def _narrowed(rows: Sequence[Sequence[Cell]], wanted: Sequence[int], room: int) -> list[int]:
    """Widths that fit the room together: first columns of sentences fold, then dates and such, then words."""
    words = [min(max(map(_longest, column)), _WHOLE) for column in zip(*rows, strict=True)]
    widths = [want if want <= _NARROW else word for want, word in zip(wanted, words, strict=True)]
    by_slack = sorted(range(len(words)), key=lambda column: words[column] - widths[column])
    for column in by_slack:
        widths[column] -= max(0, min(widths[column] - words[column], sum(widths) - room))
    while sum(widths) > room and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return _shared(widths, wanted, room)


def _shared(widths: list[int], wanted: Sequence[int], room: int) -> list[int]:
    """What is left of the room goes to all that want more, by equal parts."""
    spare = room - sum(widths)
    by_need = sorted(range(len(widths)), key=lambda column: wanted[column] - widths[column])
    for place, column in enumerate(by_need):
        more = max(0, min(wanted[column] - widths[column], spare // (len(widths) - place)))
        widths[column] += more
        spare -= more
    return widths


def _longest(cell: Cell) -> int:
    return max((cell_len(match[0]) for match in _PIECE.finditer(_plain(cell))), default=0)


def _lines(row: Sequence[Cell], widths: Sequence[int]) -> Iterator[tuple[Cell, ...]]:
    return zip_longest(*(fold(cell, width) for cell, width in zip(row, widths, strict=True)), fillvalue="")


def _append(text: Text, line: Sequence[Cell], widths: Sequence[int], right: Collection[int]) -> None:
    space = ""
    for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
        fill = " " * (width - _length(cell))
        space += fill if column in right else ""
        if _plain(cell):  # a line does not end in spaces
            text.append(space).append(cell)
            space = ""
        space += GAP if column in right else fill + GAP
    text.append("\n")


def _plain(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.plain


def _length(cell: Cell) -> int:
    return cell_len(_plain(cell))
