"""The page of figures: each benchmark puts its tables between markers of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.places import PAGE
from bench.table import Table, markdown

_PATHS = ("--json", "--peers", "--work")


@dataclass(frozen=True)
class Section:
    """A part of the page that a benchmark writes: `python -m bench.NAME --markdown`."""

    name: str
    title: str

    def into_page(
        self,
        tables: Iterable[Table],
        load: float | str,
        *,
        rounds: int | None = None,
        versions: Mapping[str, str] | None = None,
        taken: str = "",
    ) -> None:
        """Replace what is between the markers; at first, add the section to the end of the page.

        `load` is that of the machine at the start, or what is to be said of others who used it, `rounds` how
        often each tool took its turn, if all did as often, and `versions` are those of the tools. `taken` is
        the day, for figures that were kept from an earlier time.
        """
        begin = f"<!-- bench-{self.name}: begin, written by `python -m bench.{self.name} --markdown` -->"
        end = f"<!-- bench-{self.name}: end -->"
        page = PAGE.read_text()
        if begin not in page:
            page = f"{page.rstrip()}\n\n## {self.title}\n\n{begin}\n{end}\n"
        before, after = page.split(begin)[0], page.split(end)[1]
        others = load if isinstance(load, str) else _others(load)
        head = self._taken(taken or time.strftime("%Y-%m-%d"), others, rounds, versions or {})
        parts = [head, *map(markdown, tables)]
        PAGE.write_text(f"{before}{begin}\n\n" + "\n".join(parts) + f"\n{end}{after}")

    def _taken(self, day: str, others: str, rounds: int | None, versions: Mapping[str, str]) -> str:
        tools = [f"{name} {number}" for name, number in versions.items() if name != "python"]
        command = " ".join([f"python -m bench.{self.name}", *_told(sys.argv[1:])])
        turns = f"; rounds: {rounds}" if rounds else ""
        return (
            f"- Taken {day} with `{command}`{turns}.\n"
            f"- {', '.join([f'Python {platform.python_version()}', *tools])}.\n"
            f"- Machine: {_cpu()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; "
            f"{others}.\n"
        )


def versions_of(ours: Iterable[str], theirs: Iterable[str], peers: Path) -> dict[str, str]:
    """Of Python and of packages, `theirs` in the environment `peers`; those are left out if it lacks one."""
    known = {"python": platform.python_version(), **{name: version(name) for name in ours}}
    names = sorted({*theirs})
    code = f"from importlib.metadata import version; print(*map(version, {names!r}))"
    try:
        told = subprocess.run(
            [peers / "bin" / "python", "-c", code], stdout=subprocess.PIPE, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return known
    return known | dict(zip(names, told.stdout.split(), strict=True))


def _others(load: float) -> str:
    return (
        f"load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end (above {os.cpu_count()}, "
        "others use the machine too, and wall times say little)"
    )


def _told(words: Iterable[str]) -> Iterator[str]:
    """What was asked for, without paths of this machine."""
    path = False
    for word in words:
        if not path and word not in _PATHS:
            yield word
        path = word in _PATHS


def _cpu() -> str:
    """What the system calls its processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
