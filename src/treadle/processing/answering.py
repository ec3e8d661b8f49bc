"""Between rows and engine: requests in the order of rows, completions in any, answers in that of rows again.

A batch is written when it and all before it are complete. How many are open is the engine's doing: it draws
requests only as it has room for them. A row whose answer an earlier run has kept is not asked about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from treadle.domain.result import Reject
from treadle.engine import Completion, GenerationRequest
from treadle.manifest.model import GenerateSection
from treadle.processing.answers import Answer, answers_table, sums_of
from treadle.processing.job import Job
from treadle.processing.row_requests import Row, RowRequests, answerer_identity, plain_rows, request_key
from treadle.processing.streams import batches_of, lacking
from treadle.storage import RowBatch, WorkUnit


@dataclass
class _Open:
    """A batch that is not written yet: its answers so far, and how many are to come."""

    unit: WorkUnit
    batch: RowBatch
    columns: dict[str, pa.Array[Any]]
    rejects: list[Reject]
    answers: dict[int, Answer] = field(default_factory=dict)
    before: list[Answer] = field(default_factory=list)
    waiting: int = 0


@dataclass(frozen=True)
class _Asked:
    """Which row of which batch a request is about; `key` is that of its answer in the journal."""

    batch: _Open
    index: int
    request: GenerationRequest
    key: str


class Answering:
    """The answers of one run, from the first row to the last; a checkpoint, where there is one, keeps each.

    Args:
        job: the run, whose account it settles and whose output it writes.
        section: how the model is asked.
        rows: makes the requests.
    """

    def __init__(self, job: Job, section: GenerateSection, rows: RowRequests) -> None:
        self._job = job
        self._section = section
        self._rows = rows
        self._journal = job.session.row_journal()
        self._answerer = "" if self._journal is None else answerer_identity(section)
        self._queue: deque[_Open | WorkUnit] = deque()
        self._asked: dict[str, _Asked] = {}

    def requests(self, units: Sequence[WorkUnit]) -> Iterator[GenerationRequest]:
        """The requests of all rows that have no answer yet; what is complete is written on the way."""
        for unit in units:
            for number, batch in enumerate(batches_of(self._job, "rows", unit)):
                yield from self._open(unit, batch, f"{unit.id}:{number}")
                self._write_complete()
            self._queue.append(unit)
            self._write_complete()

    def take(self, completion: Completion) -> None:
        """Keep a completion, and write what is complete."""
        asked = self._asked.pop(completion.id)
        asked.batch.waiting -= 1
        if completion.finish_reason == "error":
            reason = completion.error or "the engine gave no reason"
            asked.batch.rejects.append(Reject(asked.index, reason))
        else:
            answer = asked.batch.answers[asked.index] = Answer.of(completion)
            if self._journal is not None:
                self._journal.add(asked.key, answer.kept())
        self._write_complete()

    def _open(self, unit: WorkUnit, batch: RowBatch, name: str) -> Iterator[GenerationRequest]:
        needed = dict.fromkeys([*self._rows.columns, *self._section.keep])
        missing = list(lacking(self._job, batch, needed)) if batch.num_rows else []
        usable = batch.num_rows > 0 and not missing
        rows = plain_rows(batch.rows, self._rows.columns) if usable else []
        opened = _Open(unit, batch, self._columns(batch, usable=usable), missing)
        self._queue.append(opened)
        asked = list(self._without_answer(opened, rows, name))
        opened.waiting = len(asked)
        for each in asked:
            self._asked[each.request.id] = each
            yield each.request

    def _without_answer(self, opened: _Open, rows: Sequence[Row], name: str) -> Iterator[_Asked]:
        """The rows to ask about; the others are rejected, or get the answer that they have."""
        for index, row in enumerate(rows):
            if (reason := self._rows.unusable(row)) is not None:
                opened.rejects.append(Reject(index, reason))
                continue
            request = self._rows.request(f"{name}:{index}", row)
            key = request_key(self._answerer, request)
            kept = None if self._journal is None else self._journal.find(key)
            if kept is None:
                yield _Asked(opened, index, request, key)
            else:
                opened.answers[index] = Answer(**kept)
                opened.before.append(opened.answers[index])

    def _columns(self, batch: RowBatch, *, usable: bool) -> dict[str, pa.Array[Any]]:
        """What the output has of the rows of a batch beside their answers."""
        names = {"id": self._section.id_column, **{name: name for name in self._section.keep}}
        return {name: batch.rows[column] if usable else pa.nulls(0) for name, column in names.items()}

    def _write_complete(self) -> None:
        while self._queue:
            head = self._queue[0]
            if isinstance(head, WorkUnit):
                self._job.account.end_unit(head)
            elif head.waiting:
                return
            else:
                self._write(head)
            self._queue.popleft()

    def _write(self, done: _Open) -> None:
        indices = sorted(done.answers)
        answers = [done.answers[index] for index in indices]
        sums = sums_of(answers, done.before)
        self._job.account.settle(done.unit, done.batch, out=len(answers), rejects=done.rejects, extra=sums)
        chosen = pa.array(indices, pa.int64())
        columns = {name: column.take(chosen) for name, column in done.columns.items()}
        with self._job.timed("write"):
            self._job.session.write("answers", done.unit, answers_table(columns, answers))
