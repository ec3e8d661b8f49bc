"""What commands print: plain lines, small tables, and words for times and sizes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from treadle.integrations.graph.model import duration

Cell: TypeAlias = str | Text

_WIDE = 1_000
_GAP = "  "


def out() -> Console:
    """Standard output. Where no terminal cuts it, a row of a table stays one line, as `grep` wants."""
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=_WIDE if wide else None, highlight=False)


def say(line: str = "", style: str = "") -> None:
    """One line on standard output; a path stays one line, and brackets are no markup."""
    out().print(Text(line, style=style), soft_wrap=True)


def warn(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"treadle: {line}\n")


def say_json(value: object) -> None:
    """The value as JSON, for programs."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], right: Collection[str] = ()) -> None:
    """A table without lines; the columns named in `right` are aligned there. The last ones may fold."""
    listed = [tuple(Text(each, style="bold") for each in columns), *rows]
    widths = [max(cell_len(_plain(cell)) for cell in column) for column in zip(*listed, strict=True)]
    sides: list[JustifyMethod] = ["right" if each in right else "left" for each in columns]
    console = out()
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= console.width:
        console.print(_aligned(listed, widths, sides), soft_wrap=True, end="")
    else:
        console.print(_folded(listed, sides))


def _plain(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.plain


def _aligned(
    rows: Sequence[Sequence[Cell]], widths: Sequence[int], sides: Sequence[JustifyMethod]
) -> Text:
    """The lines as one text: of ten thousand rows, a table of rich would take seconds."""
    text = Text()
    for row in rows:
        space = ""
        for cell, width, side in zip(row, widths, sides, strict=True):
            plain = _plain(cell)
            fill = " " * (width - cell_len(plain))
            space += fill if side == "right" else ""
            if plain:  # a line does not end in spaces
                text.append(space).append(plain, "" if isinstance(cell, str) else cell.style)
                space = ""
            space += _GAP if side == "right" else fill + _GAP
        text.append("\n")
    return text


def _folded(rows: Sequence[Sequence[Cell]], sides: Sequence[JustifyMethod]) -> Table:
    head, *body = rows
    folded = Table(box=None, header_style="bold", pad_edge=False)
    for column, side in zip(head, sides, strict=True):
        folded.add_column(column, justify=side, overflow="fold", no_wrap=side == "right")
    for row in body:
        folded.add_row(*(Text(each) if isinstance(each, str) else each for each in row))
    return folded


def when(iso: str) -> str:
    """An ISO 8601 time as the clock on the wall showed it; empty when there is none."""
    return f"{datetime.fromisoformat(iso).astimezone():%Y-%m-%d %H:%M:%S}" if iso else ""


def took(seconds: float | None) -> str:
    """A length of time, empty when it is not known."""
    return "" if seconds is None else duration(seconds)


def size(count: int) -> str:
    """Bytes for people."""
    return decimal(count)


def counted(count: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def command(*words: str, store: str | None = None) -> str:
    """A line to paste: `treadle` and these words, with the store where it was named."""
    placed = ("--store", store) if store is not None else ()
    return shlex.join(("treadle", *words, *placed))
