"""Put the tables into the page, between markers of their own."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping

from bench.dag.show import PAGE, cpu
from bench.dag.tables import Table

BEGIN = "<!-- bench-data: begin, written by `python -m bench.data --markdown` -->"
END = "<!-- bench-data: end -->"
TITLE = "## Rows"


def into_page(
    tables: Iterable[Table],
    command: str,
    versions: Mapping[str, str],
    rounds: int,
    loads: tuple[float, float],
) -> None:
    """Replace what is between the markers; at first, add the section to the end of the page."""
    page = PAGE.read_text()
    if BEGIN not in page:
        page = f"{page.rstrip()}\n\n{TITLE}\n\n{BEGIN}\n{END}\n"
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    parts = [_taken(command, versions, rounds, loads), *map(_markdown, tables)]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}")


def _taken(command: str, versions: Mapping[str, str], rounds: int, loads: tuple[float, float]) -> str:
    system = f"{platform.system()} {platform.release()}"
    tools = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "python")
    return (
        f"- Taken {time.strftime('%Y-%m-%d')} with `{command}`: {rounds} round{'s' if rounds > 1 else ''}.\n"
        f"- Python {platform.python_version()}; {tools}.\n"
        f"- Machine: {cpu()}, {os.cpu_count()} cores, {system}; load {loads[0]:.1f} at the start and "
        f"{loads[1]:.1f} at the end (above {os.cpu_count()}, others "
        "use the machine too, and wall times say little).\n"
    )


def _markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", table.about, ""]
    marks = [
        "---" if at == 0 or table.title.startswith("Settings") else "---:" for at in range(len(table.head))
    ]
    lines += [_line(table.head), _line(marks)]
    lines += [_line(row) for row in table.rows]
    lines += ["", *table.notes] if table.notes else []
    return "\n".join([*lines, ""])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"
