"""What commands print: plain lines, small tables, and words for times and sizes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from treadle.integrations.graph.model import duration

_WIDE = 1_000


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


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Iterable[str] = ()) -> None:
    """A table without lines; the columns named in `right` are aligned there. The last ones may fold."""
    texts = [[each if isinstance(each, Text) else Text(each) for each in row] for row in rows]
    aligned: list[JustifyMethod] = ["right" if each in right else "left" for each in columns]
    widths = [max(map(cell_len, cells)) for cells in _columns(columns, texts)]
    console = out()
    if sum(widths) + 2 * len(widths) <= console.width:
        head = [Text(each, style="bold") for each in columns]
        lines = (_aligned(row, widths, aligned) for row in (head, *texts))
        console.print(Text("\n").join(lines), soft_wrap=True)
    else:
        console.print(_folded(columns, texts, aligned))


def _columns(columns: Sequence[str], texts: Sequence[Sequence[Text]]) -> Iterator[tuple[str, ...]]:
    return zip(columns, *([each.plain for each in row] for row in texts), strict=True)


def _aligned(row: Sequence[Text], widths: Sequence[int], aligned: Sequence[JustifyMethod]) -> Text:
    """One line; far quicker than a table of thousands of rows that need no folding."""
    line = Text()
    for cell, width, side in zip(row, widths, aligned, strict=True):
        gap = " " * (width - cell.cell_len)
        line.append(gap if side == "right" else "").append_text(cell)
        line.append("  " if side == "right" else f"{gap}  ")
    line.rstrip()
    return line


def _folded(
    columns: Sequence[str], texts: Iterable[Sequence[Text]], aligned: Sequence[JustifyMethod]
) -> Table:
    folded = Table(box=None, header_style="bold", pad_edge=False)
    for column, side in zip(columns, aligned, strict=True):
        folded.add_column(column, justify=side, overflow="fold", no_wrap=side == "right")
    for row in texts:
        folded.add_row(*row)
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
