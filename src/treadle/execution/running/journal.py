"""What stores keep of a run beside its builds: when it went on, and which steps ended without an attempt."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from treadle.artifacts import open_store
from treadle.artifacts.logs import keep_log, log_file
from treadle.artifacts.prefix import hide_from_git
from treadle.artifacts.script import command_line
from treadle.execution.running.step_log import note_end
from treadle.execution.running.unfinished import Unit
from treadle.kernel import Outcome
from treadle.storage.ledger import AttemptNote, AttemptOutcome, Claim, RunNote


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

    def end(self, counts: Mapping[type[Outcome], int], cancelled: int, *, sweep: bool) -> None:
        """The run is over, and so many of the failed steps were cancelled.

        With `sweep`, processes that worked for it have died and left something.
        """
        told = {kind.__name__.lower(): count for kind, count in counts.items()}
        if cancelled:
            told |= {"failed": told["failed"] - cancelled, "cancelled": cancelled}
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

    def note_forced(self, unit: Unit, outcome: AttemptOutcome, reason: str) -> float:
        """The attempt could not tell its end; how many seconds it took. Its lease is given back."""
        store = open_store(str(unit.step.output_path_prefix))
        place = store.place(unit.step.output_path)
        owner = store.ledger.owners([place]).get(place)
        began = owner.since if owner is not None and owner.run == self._run else _now()
        seconds = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds())
        note = AttemptNote(
            self._run, unit.key, unit.step.name, place, unit.attempt, outcome, reason, began, seconds
        )
        note_end(log_file(store.prefix, place, self._run, unit.attempt), unit.step.name, unit.attempt, reason)
        claim = store.ledger.claim(place, lambda: None, self._run)
        if isinstance(claim, Claim):
            store.ledger.release(claim, note)
        else:  # by somebody who was quicker, or by the body, which goes on
            store.ledger.note([note])
        if outcome != "lost":  # else the next one goes on with the same lines
            keep_log(store.prefix, place, self._run, unit.attempt)
        return seconds

    def _note_run(self, prefix: str, ended: str, counts: Mapping[str, int]) -> None:
        began, host = self._began[prefix], socket.gethostname()
        open_store(prefix).ledger.note_run(RunNote(self._run, began, ended, host, command_line(), counts))


def _now() -> str:
    return datetime.now(UTC).isoformat()
