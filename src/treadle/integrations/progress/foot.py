"""What stands at the foot of the terminal while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from treadle.integrations.graph.model import duration
from treadle.integrations.progress.state import Active, Doing, View, Word
from treadle.integrations.progress.summary import label

LINES = 12
"""Steps that the foot names at once; the rest are counted."""
_ON_PATH = "◆"
_NAMES = 32
_STYLES: Mapping[Doing, str] = {Doing.RUNNING: "", Doing.WAITING: "cyan", Doing.PAUSED: "yellow"}


def foot(view: View, now: float, spinner: Spinner, height: int) -> RenderableType:
    """One line for each step under way, as far as there is room, and one for the run."""
    room = max(1, min(LINES, height - 4))
    shown = _chosen(view, room)
    grid = Table.grid(padding=(0, 1), expand=False)
    names = min(_NAMES, max((len(each.called) for each in shown), default=0))
    for least in (1, 1, names, 1):
        grid.add_column(no_wrap=True, overflow="ellipsis", min_width=least)
    for each in shown:
        mark = Text(_ON_PATH if each.id in view.critical else " ", style="yellow")
        sign: RenderableType = spinner if each.doing is Doing.RUNNING else Text("·", style="dim")
        told = Text(_told(each, view.expected, now), style=_STYLES[each.doing] or "dim")
        grid.add_row(sign, mark, label(each.id, each.name, each.label), told)
    lines: list[RenderableType] = [grid] if shown else []
    if (more := len(view.active) - len(shown)) > 0:
        lines.append(Text(f"    and {more:,} more under way", style="dim"))
    return Group(*lines, _bar(view))


def _chosen(view: View, room: int) -> list[Active]:
    """Those on a longest path and those that run before those that wait; else in the order they began."""
    if len(view.active) <= room:
        return list(view.active)
    ranked = sorted(view.active, key=lambda each: (each.id not in view.critical, each.doing.value))
    chosen = {each.id for each in ranked[:room]}
    return [each for each in view.active if each.id in chosen]


def _told(each: Active, expected: Mapping[str, float], now: float) -> str:
    passed = now - each.since
    if each.doing is Doing.WAITING:
        return f"waits {duration(max(0.0, passed))} for {each.of}"
    if each.doing is Doing.PAUSED:
        return f"attempt {each.attempt} in {duration(max(0.0, -passed))}"
    usual = f" of ~{duration(expected[each.id])}" if each.id in expected else ""
    return f"{duration(passed)}{usual}" + (f", attempt {each.attempt}" if each.attempt > 1 else "")


def _bar(view: View) -> RenderableType:
    ended = view.counts.total()
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(
        total=max(view.total, 1), completed=ended, width=24, complete_style="cyan", finished_style="green"
    )
    grid.add_row(bar, Text(_counted(view, ended)))
    return grid


def _counted(view: View, ended: int) -> str:
    doing = [each.doing for each in view.active]
    parts = [f"{ended:,}/{view.total:,} ended" if view.total else "looking"]
    parts += [
        f"{view.counts[word]:,} {word.value}" for word in (Word.FAILED, Word.CACHED) if view.counts[word]
    ]
    parts += [f"{doing.count(each)} {each.value}" for each in Doing if each in doing]
    if view.left is not None:
        parts.append(f"~{duration(view.left)} left" if view.left >= 1 else "due now")
    return ", ".join(parts)
