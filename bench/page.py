"""The page of figures: each benchmark puts its tables between markers of its own."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bench.dag.show import PAGE, cpu
from bench.dag.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of the page that a benchmark writes: `python -m bench.NAME --markdown`."""

    name: str
    title: str

    def into_page(
        self,
        tables: Iterable[Table],
        versions: Mapping[str, str],
        rounds: int,
        loads: tuple[float, float],
    ) -> None:
        """Replace what is between the markers; at first, add the section to the end of the page."""
        begin = f"<!-- bench-{self.name}: begin, written by `python -m bench.{self.name} --markdown` -->"
        end = f"<!-- bench-{self.name}: end -->"
        page = PAGE.read_text()
        if begin not in page:
            page = f"{page.rstrip()}\n\n## {self.title}\n\n{begin}\n{end}\n"
        before, after = page.split(begin)[0], page.split(end)[1]
        parts = [self._taken(versions, rounds, loads), *map(_markdown, tables)]
        PAGE.write_text(f"{before}{begin}\n\n" + "\n".join(parts) + f"\n{end}{after}")

    def _taken(self, versions: Mapping[str, str], rounds: int, loads: tuple[float, float]) -> str:
        system = f"{platform.system()} {platform.release()}"
        tools = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "python")
        command = " ".join([f"python -m bench.{self.name}", *_told(sys.argv[1:])])
        return (
            f"- Taken {time.strftime('%Y-%m-%d')} with `{command}`; rounds: {rounds}.\n"
            f"- Python {platform.python_version()}; {tools}.\n"
            f"- Machine: {cpu()}, {os.cpu_count()} cores, {system}; load {loads[0]:.1f} at the start and "
            f"{loads[1]:.1f} at the end (above {os.cpu_count()}, others "
            "use the machine too, and wall times say little).\n"
        )


def _told(words: Iterable[str]) -> Iterator[str]:
    """What was asked for, without paths of this machine."""
    path = False
    for word in words:
        if not path and word not in ("--peers", "--work"):
            yield word
        path = word in ("--peers", "--work")


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
