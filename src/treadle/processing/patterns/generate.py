"""Run type `generate`: a prompt from each row, answered by a language model.

The engine batches continuously and finishes requests in any order; answers are put back into the order of the
rows before they are written. With a checkpoint each answer is kept as it comes, and a run that goes on asks
only about the rows that have none.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from treadle.domain.result import Counters
from treadle.engine import Completion, GenerationRequest
from treadle.manifest.model import GenerateSection
from treadle.processing.answer_progress import AnswerProgress
from treadle.processing.answering import Answering
from treadle.processing.checks import required_section
from treadle.processing.job import Job
from treadle.processing.pipeline import timed_items
from treadle.processing.prompts import read_template
from treadle.processing.row_requests import RowRequests
from treadle.processing.streams import units_of
from treadle.processing.unit_run import raise_if_stopped
from treadle.storage import WorkUnit
from treadle.telemetry import PhaseEnded, PhaseStarted

if TYPE_CHECKING:
    from treadle.engine import Engine


def run_generate(job: Job) -> Counters:
    """Input "rows" to output "answers", a file for each unit.

    Its columns: id, those of `generate.keep`, answer, prompt_tokens int32, new_tokens int32, finish_reason,
    seconds float64 (the row's share of the time of the engine's steps, by tokens). The counters
    `prompt_tokens`, `new_tokens` and `engine_milliseconds` are the sums, `cut_answers` is how many answers
    ended at `max_new_tokens`. `answered_before` is how many rows had an answer in the checkpoint, and the
    sums of these alone are `prompt_tokens_before` and so on.

    A row is rejected when its id, or its value for a field of the prompt, is null, or when the engine ends
    its request with an error; such a row is asked about again by a run that goes on. The seconds of the stage
    `process` include those of reading, which the engine asks for between its steps.

    Raises:
        ManifestError: the section `generate` or a dataset is missing or unknown, or the prompt is not a
            template.
        MissingExtraError: the packages of the engine are not installed.
        UnknownNameError: the model is not known.
        RunError: a column is missing, or too many bad rows.
    """
    section = required_section(job.manifest, "generate", job.manifest.generate)
    template = read_template(job.manifest, "generate.prompt", section.prompt)
    answering = Answering(job, section, RowRequests(section, template, job.manifest.runtime.seed))
    units = units_of(job, "rows")
    progress = AnswerProgress(job.sink, job.ctx.run_id, job.manifest.metrics.interval)
    with _phase(job, units), closing(_completions(section, answering.requests(units))) as completions:
        for completion in timed_items(completions, job.timed, "process"):
            raise_if_stopped(job.ctx)
            answering.take(completion)
            progress.take(completion)
        progress.end()
    return job.account.close()


def _completions(section: GenerateSection, requests: Iterator[GenerationRequest]) -> Generator[Completion]:
    """What the engine makes of the requests; it is loaded when there is one."""
    first = next(requests, None)
    if first is not None:
        yield from _load(section).generate(chain([first], requests))


def _load(section: GenerateSection) -> Engine:
    # Here, not at the top: it loads torch, which takes over a second and is an optional package.
    from treadle.engine import Engine

    return Engine.load(
        section.model,
        max_batch=section.batch,
        threads=section.threads,
        token_budget=section.token_budget,
        cache_tokens=section.cache_tokens,
        prefix_cache=section.prefix_cache,
        preemption=section.preemption,
        host_tokens=section.host_tokens,
        precision=section.precision,
        kernels=section.kernels,
    )


@contextmanager
def _phase(job: Job, units: Sequence[WorkUnit]) -> Iterator[None]:
    """Say that the units are being worked on, and at the end of the block that they are done."""
    since = time.perf_counter()
    size = sum(unit.bytes for unit in units)
    job.sink.emit(PhaseStarted(job.ctx.run_id, "main", len(units), size))
    yield
    job.sink.emit(PhaseEnded(job.ctx.run_id, "main", time.perf_counter() - since))
