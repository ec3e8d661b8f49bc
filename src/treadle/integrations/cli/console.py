"""What commands print: plain lines, small tables, and words for times and sizes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from treadle.errors import ArgumentError
from treadle.integrations.graph.model import duration
from treadle.integrations.progress.columns import Cell, aligned
from treadle.termination import Terminated

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
    sys.stdout.write(as_json(value, indent=2) + "\n")


def as_json(value: object, indent: int | None = None) -> str:
    """The value as JSON, in ASCII where standard output has no letters for all of it."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], right: Collection[str] = ()) -> None:
    """A table without lines; columns named in `right` are aligned there, and wide ones fold to fit."""
    listed = [tuple(Text(each, style="bold") for each in columns), *rows]
    sides = [place for place, each in enumerate(columns) if each in right]
    console = out()
    console.print(aligned(listed, sides, console.width), soft_wrap=True, end="")


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


def check_place(file: Path) -> None:
    """Raises ArgumentError when no file can be written there: its folder is not there, or it is a folder."""
    if not file.parent.is_dir():
        raise ArgumentError(f"{file}: there is no folder {file.parent}; make it, or name another file")
    if file.is_dir():
        raise ArgumentError(f"{file} is a folder; name a file in it")


@contextmanager
def told_when_stopped(what: Callable[[], str]) -> Iterator[None]:
    """Have Ctrl-C or SIGTERM say, when it ends the block, what is kept and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as error:
        error.add_note(what())
        raise
