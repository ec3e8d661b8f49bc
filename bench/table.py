"""A table of figures, and how it looks on the terminal and on the page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, a line on how to read it, a head and rows; everything is text by now, notes stand below.

    The first `words` columns hold words, the others figures. `picture` is the path of one from the page.
    """

    title: str
    about: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    words: int = 1
    picture: str = ""

    @classmethod
    def of(cls, title: str, about: str, rows: Sequence[Mapping[str, object]], notes: Sequence[str]) -> Table:
        """Of rows by the names of their columns; a row may lack some."""
        head = list(dict.fromkeys(name for row in rows for name in row)) or ["nothing was measured"]
        words = [any(isinstance(row.get(name), str) for row in rows) for name in head]
        text = [tuple(_cell(row.get(name)) for name in head) for row in rows]
        return cls(title, about, head, text, notes, words=[*words, False].index(False))


def on_terminal(tables: Iterable[Table]) -> None:
    """With rich, which treadle needs in any case."""
    import rich.box
    from rich.console import Console
    from rich.table import Table as RichTable

    # What stands in brackets is no markup.
    console = Console(width=None if sys.stdout.isatty() else 170, markup=False)
    for table in tables:
        shown = RichTable(title=table.title, caption=table.about, box=rich.box.SIMPLE_HEAD)
        for at, name in enumerate(table.head):
            shown.add_column(name, justify="left" if at < table.words else "right")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
        for note in table.notes:
            console.print(note)


def markdown(table: Table) -> str:
    """As it stands on the page, with its title as a heading."""
    marks = ["---" if at < table.words else "---:" for at in range(len(table.head))]
    lines = [f"### {table.title[0].upper()}{table.title[1:]}", "", table.about, ""]
    lines += map(_line, [table.head, marks, *table.rows])
    lines += ["", *table.notes] if table.notes else []
    lines += ["", f"![{table.title}]({table.picture})"] if table.picture else []
    return "\n".join([*lines, ""])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"
