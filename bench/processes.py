"""What this process has started, and what that holds in memory."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


def descendants() -> list[int]:
    """Its children, theirs, and so on."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found = [os.getpid()]
    for each in found:  # which grows meanwhile
        found += children.get(each, ())
    return found[1:]


def end_descendants() -> None:
    """Kill them all."""
    for process in descendants():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def memory(process: int) -> float:
    """Proportional set size in MB; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1.024e-3
    return 0.0


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text()
                yield int(entry.name), int(state.rpartition(")")[2].split()[1])
