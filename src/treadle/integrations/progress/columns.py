"""Rows as aligned columns that fit a width: what is too long folds at spaces and after `/`, in the middle of a
word only where one word alone is too long.
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
_PIECE = re.compile(r"[^\s/]*/+|[^\s/]+|\s+")
_WHOLE = 44  # so long a word, such as the id of a run or a step with a long name, is not broken
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
    """Where a line may end; of a word that is longer than a line, where it has to."""
    for match in _PIECE.finditer(plain):
        starts = range(match.start(), match.end(), width)
        yield from ((start, min(start + width, match.end())) for start in starts)


def _narrowed(rows: Sequence[Sequence[Cell]], wanted: Sequence[int], room: int) -> list[int]:
    """Widths that together fit the room: no word is broken while that can be, and who wants more gets more."""
    widths = [min(max(map(_longest, column)), _WHOLE) for column in zip(*rows, strict=True)]
    while sum(widths) > room and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
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
