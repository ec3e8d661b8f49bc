"""Show the tables on the terminal, and put them into the page between its markers."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.dag.launch import ROOT
from bench.dag.tables import Table

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- bench-dag: begin, written by `make bench-dag` -->", "<!-- bench-dag: end -->"


def on_terminal(tables: Iterable[Table]) -> None:
    """With rich, which treadle needs in any case."""
    import rich.box
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(width=None if sys.stdout.isatty() else 170)
    for table in tables:
        shown = RichTable(title=table.title, caption=table.about, box=rich.box.SIMPLE_HEAD)
        for at, name in enumerate(table.head):
            shown.add_column(name, justify="left" if at == 0 or table.title == "Settings" else "right")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
        for note in table.notes:
            console.print(note)


def into_page(tables: Iterable[Table], command: str, picture: Path | None) -> None:
    """Replace what is between the markers."""
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    image = (
        f"![Cost of a step by the size of the graph]({picture.relative_to(PAGE.parent)})\n" if picture else ""
    )
    parts = [_taken(command), *(_markdown(each, image if each.title == "growth" else "") for each in tables)]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}")


def _taken(command: str) -> str:
    system = f"{platform.system()} {platform.release()}"
    return (
        f"- Taken {time.strftime('%Y-%m-%d')} with `{command}`, Python {platform.python_version()}.\n"
        f"- Machine: {cpu()}, {os.cpu_count()} cores, {system}; load at the end {os.getloadavg()[0]:.1f}.\n"
    )


def cpu() -> str:
    """What the system calls its processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _markdown(table: Table, image: str) -> str:
    title = table.title[0].upper() + table.title[1:]
    marks = ["---" if at == 0 or table.title == "Settings" else "---:" for at in range(len(table.head))]
    lines = [f"### {title}", "", table.about, "", _line(table.head), _line(marks)]
    lines += [_line(row) for row in table.rows]
    lines += ["", *table.notes] if table.notes else []
    return "\n".join([*lines, "", image]) if image else "\n".join([*lines, ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"
