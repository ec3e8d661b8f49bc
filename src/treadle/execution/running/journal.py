"""What stores keep of a run beside its builds: when it went on, and which steps ended without an attempt."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from treadle.artifacts import open_store
from treadle.artifacts.prefix import hide_from_git
from treadle.execution.running.unfinished import Unit
from treadle.kernel import Outcome
from treadle.storage.ledger import AttemptNote, AttemptOutcome, RunNote

_COMMAND = 1_000


class Journal:
    """The notes of one run, in each store that has one of its steps."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._began: dict[str, str] = {}

    def begin(self, prefixes: Iterable[str]) -> None:
        """The run has steps to run in these stores; one of which nothing has to run may be read-only."""
        for prefix in prefixes:
            if prefix not in self._began:
                self._began[prefix] = _now()
                hide_from_git(prefix)
                open_store(prefix).workplace.sweep()
                self._note_run(prefix, "", {})

    def end(self, counts: Mapping[type[Outcome], int], *, sweep: bool) -> None:
        """The run is over; with `sweep`, processes that worked for it have died and left something."""
        told = {kind.__name__.lower(): count for kind, count in counts.items()}
        for prefix in self._began:
            self._note_run(prefix, _now(), told)
            workplace = open_store(prefix).workplace
            workplace.tidy()
            if sweep:
                workplace.sweep()

    def note(self, units: Iterable[Unit], outcome: AttemptOutcome, reasons: Iterable[str]) -> None:
        """These steps ended so, without an attempt, or without one that could tell."""
        notes: dict[str, list[AttemptNote]] = {}
        for unit, reason in zip(units, reasons, strict=True):
            prefix = str(unit.step.output_path_prefix)
            place = open_store(prefix).place(unit.step.output_path)
            notes.setdefault(prefix, []).append(
                AttemptNote(
                    self._run, unit.key, unit.step.name, place, unit.attempt, outcome, reason, _now(), 0.0
                )
            )
        for prefix, each in notes.items():
            open_store(prefix).ledger.note(each)

    def _note_run(self, prefix: str, ended: str, counts: Mapping[str, int]) -> None:
        command = shlex.join(sys.argv)[:_COMMAND]
        began, host = self._began[prefix], socket.gethostname()
        open_store(prefix).ledger.note_run(RunNote(self._run, began, ended, host, command, counts))


def _now() -> str:
    return datetime.now(UTC).isoformat()
