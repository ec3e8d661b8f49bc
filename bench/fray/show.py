"""Put the tables into the page, between markers of their own."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable

from bench.dag.show import PAGE, cpu
from bench.dag.tables import Table

BEGIN = "<!-- bench-fray: begin, written by `python -m bench.fray --markdown` -->"
END = "<!-- bench-fray: end -->"
TITLE = "## What a job and a unit cost"


def into_page(tables: Iterable[Table]) -> None:
    """Replace what is between the markers; at first, add the section to the end of the page."""
    page = PAGE.read_text()
    if BEGIN not in page:
        page = f"{page.rstrip()}\n\n{TITLE}\n\n{BEGIN}\n{END}\n"
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    parts = [_taken(), *map(_markdown, tables)]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}")


def _taken() -> str:
    system = f"{platform.system()} {platform.release()}"
    return (
        f"- Taken {time.strftime('%Y-%m-%d')} with `python -m bench.fray --markdown`, "
        f"Python {platform.python_version()}.\n"
        f"- Machine: {cpu()}, {os.cpu_count()} cores, {system}; load at the end {os.getloadavg()[0]:.1f}.\n"
    )


def _markdown(table: Table) -> str:
    lines = [f"### {table.title[0].upper()}{table.title[1:]}", "", table.about, ""]
    lines += [_line(table.head), _line(["---"] * len(table.head))]
    lines += [_line(row) for row in table.rows]
    lines += ["", *table.notes] if table.notes else []
    return "\n".join([*lines, ""])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"
