"""Run type `generate`: a prompt from each row, answered by a language model.

The engine batches continuously and finishes requests in any order; answers are put back into the order of the
rows before they are written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from treadle.domain.result import Counters, Reject
from treadle.engine import Completion, GenerationRequest, Message
from treadle.manifest.model import GenerateSection
from treadle.processing.account import Account
from treadle.processing.checks import required_section
from treadle.processing.job import Job
from treadle.processing.pipeline import closing_iterator, timed_items
from treadle.processing.prompts import Template, read_template
from treadle.processing.streams import batches_of, lacking, units_of
from treadle.processing.unit_run import raise_if_stopped
from treadle.storage import RowBatch, WorkUnit


def run_generate(job: Job) -> Counters:
    """Input "rows" to output "answers": id, answer, prompt_tokens int32, new_tokens int32, finish_reason.

    A row is rejected when its id, or its value for a field of the prompt, is null, or when the engine ends
    its request with an error. The seconds of `process` include those of reading, which the engine asks for
    between its steps.

    Raises:
        ManifestError: the section `generate` or a dataset is missing or unknown, or the prompt is not a
            template.
        MissingExtraError: the packages of the engine are not installed.
        UnknownNameError: the model is not known.
        RunError: a column is missing, or too many bad rows.
    """
    section = required_section(job.manifest, "generate", job.manifest.generate)
    prompts = _Prompts(section, read_template(job.manifest, "generate.prompt", section.prompt))
    units = units_of(job, "rows")
    # Here, not at the top: it loads torch, which takes over a second and is an optional package.
    from treadle.engine import Engine

    engine = Engine.load(section.model, max_batch=section.batch, threads=section.threads)
    writer = _InOrder(job, job.account)
    with closing_iterator(engine.generate(writer.requests(units, prompts))) as completions:
        for completion in timed_items(completions, job.timed, "process"):
            raise_if_stopped(job.ctx)
            writer.take(completion)
    return writer.close()


class _Prompts:
    """Rows to requests."""

    def __init__(self, section: GenerateSection, template: Template) -> None:
        self._section = section
        self._template = template
        self.id_column = section.id_column
        self.columns = tuple(dict.fromkeys([section.id_column, *template.columns]))

    def unusable(self, row: dict[str, object]) -> str | None:
        """Why the row cannot be asked about, or None."""
        return next((f"{name} is null" for name in self.columns if row[name] is None), None)

    def request(self, name: str, row: dict[str, object]) -> GenerationRequest:
        section = self._section
        text = self._template.fill(row)
        return GenerationRequest(
            name, self._chat(text) if section.chat else text, section.max_new_tokens, section.stop
        )

    def _chat(self, text: str) -> tuple[Message, ...]:
        system = self._section.system
        return (*((Message("system", system),) if system is not None else ()), Message("user", text))


@dataclass
class _Open:
    """A batch whose requests are with the engine."""

    unit: WorkUnit
    batch: RowBatch
    ids: pa.Array[Any]
    rejects: list[Reject]
    waiting: int
    answers: dict[int, Completion] = field(default_factory=dict)


class _InOrder:
    """Hands out the requests of all rows, takes the completions in any order, writes in the order of rows.

    A batch is written when it and all before it are complete. How many are open is the engine's doing: it
    draws requests only as it has room for them.
    """

    def __init__(self, job: Job, account: Account) -> None:
        self._job = job
        self._account = account
        self._queue: deque[_Open | WorkUnit] = deque()
        self._owners: dict[str, tuple[_Open, int]] = {}

    def requests(self, units: Sequence[WorkUnit], prompts: _Prompts) -> Iterator[GenerationRequest]:
        for unit in units:
            for number, batch in enumerate(batches_of(self._job, "rows", unit)):
                yield from self._open(unit, batch, f"{unit.id}:{number}", prompts)
            self._queue.append(unit)

    def _open(
        self, unit: WorkUnit, batch: RowBatch, name: str, prompts: _Prompts
    ) -> Iterator[GenerationRequest]:
        missing = lacking(self._job, batch, prompts.columns) if batch.num_rows else ()
        rows = [] if missing else _rows(batch, prompts)
        reasons = [prompts.unusable(row) for row in rows]
        rejects = list(missing) or [
            Reject(index, reason) for index, reason in enumerate(reasons) if reason is not None
        ]
        ids = batch.rows[prompts.id_column] if rows else pa.nulls(0)
        opened = _Open(unit, batch, ids, rejects, reasons.count(None))
        self._queue.append(opened)
        for index, row in enumerate(rows):
            if reasons[index] is None:
                request = prompts.request(f"{name}:{index}", row)
                self._owners[request.id] = (opened, index)
                yield request

    def take(self, completion: Completion) -> None:
        """Keep a completion, and write what is complete."""
        owner, index = self._owners.pop(completion.id)
        owner.waiting -= 1
        if completion.finish_reason == "error":
            owner.rejects.append(Reject(index, completion.error or "the engine gave no reason"))
        else:
            owner.answers[index] = completion
        self._write_complete()

    def close(self) -> Counters:
        """Write what is left when the engine has answered everything."""
        self._write_complete()
        return self._account.close()

    def _write_complete(self) -> None:
        while self._queue:
            head = self._queue[0]
            if isinstance(head, WorkUnit):
                self._account.end_unit(head)
            elif head.waiting:
                return
            else:
                self._write(head)
            self._queue.popleft()

    def _write(self, done: _Open) -> None:
        answers = sorted(done.answers.items())
        self._account.settle(done.unit, done.batch, out=len(answers), rejects=done.rejects)
        indices = pa.array([index for index, _ in answers], pa.int64())
        with self._job.timed("write"):
            self._job.session.write(
                "answers", done.unit, _table(done.ids.take(indices), [each for _, each in answers])
            )


def _rows(batch: RowBatch, prompts: _Prompts) -> list[dict[str, object]]:
    if not batch.num_rows:
        return []
    return batch.rows.select(list(prompts.columns)).to_pylist()


def _table(ids: pa.Array[Any], answers: list[Completion]) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "answer": pa.array([each.text for each in answers], pa.string()),
            "prompt_tokens": pa.array([each.prompt_tokens for each in answers], pa.int32()),
            "new_tokens": pa.array([len(each.token_ids) for each in answers], pa.int32()),
            "finish_reason": pa.array([each.finish_reason for each in answers], pa.string()),
        }
    )
