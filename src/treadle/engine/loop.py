"""The walk of one engine step.

    schedule   who runs, and with how many tokens
    declare    what each resource has to do
    admit      every resource reserves its part, or none does; for want of room the youngest may have to wait
    plan       slots, positions, what each token may look at, how each row is sampled
    commit     what was reserved is used: the step that follows counts on it
    stage      that one is admitted and planned meanwhile, on a thread, as far as it can be foreseen
    forward    the model computes; keys and values land in the planned slots
    sample     a token for each row that has all of its tokens computed
    extend     pages that are full by now can be found by others that begin alike
    finish     each new token ends its request, or the request goes on

A pass that fails takes its own rows down and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from time import perf_counter

import torch

from treadle.engine.generation import Generation, Row
from treadle.engine.node import Node
from treadle.engine.planner import Planner
from treadle.engine.requests import Completion, Delta, FinishReason
from treadle.engine.resources.sampling import Pick
from treadle.engine.resources.step import Refusal, SubmoduleStep
from treadle.engine.scheduler import Scheduler
from treadle.errors import EngineError
from treadle.kernel import Unwind


class Loop:
    """Turns the requests of one scheduler step by step.

    Args:
        node: where they run.
        scheduler: who runs.
        plan_ahead: stage each step while the one before it computes.
    """

    def __init__(self, node: Node, scheduler: Scheduler, *, plan_ahead: bool) -> None:
        self._node = node
        self._scheduler = scheduler
        self._planner = Planner(node) if plan_ahead else None

    def step(self) -> list[Delta | Completion]:
        """One step for all that run; returns those that ended in it, and what it added to streamed ones.

        Raises:
            EngineError: requests wait and none can run, because somebody else holds the node's cache.
        """
        rows = self._scheduler.schedule()
        unopened = self._scheduler.unopened
        if not rows and not unopened:
            raise EngineError("no request can run: the cache of this node is held by somebody else")
        told = [self._end(each, "error", _why("opening the request", each.failure)) for each in unopened]
        return list(chain(*told, self._advance(rows)))

    def abort(self, request_id: str) -> list[Delta | Completion]:
        """End the requests of that name, waiting or running, with what they have so far."""
        return list(chain(*(self._end(each, "abort") for each in self._scheduler.named(request_id))))

    def _advance(self, rows: Sequence[Row]) -> Iterator[Delta | Completion]:
        try:
            with _charged(rows):
                rows, picks = self._pass(rows) if rows else (rows, ())
        except Exception as error:  # noqa: BLE001 - torch raises IndexError and MemoryError as well
            # One that made room before the pass failed has no part in it.
            for generation in [row.generation for row in rows if self._scheduler.runs(row.generation)]:
                yield from self._end(generation, "error", _why("the forward pass", error))
        else:
            yield from self._finish_or_go_on(rows, picks)

    def _pass(self, rows: Sequence[Row]) -> tuple[Sequence[Row], tuple[Pick | None, ...]]:
        """The rows that there was room for, and what was picked for each of them that samples."""
        rows, step = self._admit(rows)
        with Unwind() as unwind:
            unwind.push(self._node.runner.rollback_admit, step)  # a committed one has nothing to give back
            unwind.push(self._node.distrust, rows)
            self._node.runner.plan(step)
            self._node.runner.commit(step)
            with self._staging(rows), torch.inference_mode():
                scores = self._node.forward(step, rows)
                picks = self._node.sample(step, scores) if len(scores) else ()
            unwind.release()
        self._node.extend(rows, picks)
        return rows, picks

    def _staging(self, rows: Sequence[Row]) -> AbstractContextManager[None]:
        return self._planner.staging(self._scheduler.foresee(rows)) if self._planner else nullcontext()

    def _declare(self, rows: Sequence[Row]) -> SubmoduleStep:
        staged = self._planner.declared(rows) if self._planner else None
        return staged or self._node.declare(rows)

    def _admit(self, rows: Sequence[Row]) -> tuple[Sequence[Row], SubmoduleStep]:
        """An admitted step of these rows, without those that had to make room for others."""
        while True:
            step = self._declare(rows)
            outcome = self._node.runner.admit(step)
            if outcome.ok:
                return rows, step
            if outcome.reason is not Refusal.ALLOCATION_FAILED or not self._scheduler.preempt():
                # Cannot be: what is opened has room to go on to its end, the oldest at least.
                raise EngineError(f"resource {outcome.key!r} refused a promised step: {outcome.reason}")
            rows = tuple(row for row in rows if self._scheduler.runs(row.generation))

    def _finish_or_go_on(
        self, rows: Sequence[Row], picks: Sequence[Pick | None]
    ) -> Iterator[Delta | Completion]:
        fresh = iter(picks)
        for row in rows:
            row.generation.computed = row.end
            if row.samples:
                yield from self._accept(row.generation, next(fresh))

    def _accept(self, generation: Generation, pick: Pick | None) -> Iterator[Delta | Completion]:
        """Take a new token in; tell it when the request is streamed, and the completion after the last."""
        if pick is None:
            # Where one number is NaN, those that were computed beside it may be: keep nothing of the text.
            self._node.cache.distrust(generation.rid, 0)
            why = "the model's scores are not numbers: its weights may be damaged"
            yield from self._end(generation, "error", why)
            return
        generation.take(pick)
        if generation.streamed:
            yield generation.delta()
        if reason := generation.finish_reason:
            yield from self._end(generation, reason)

    def _end(
        self, generation: Generation, reason: FinishReason, error: str | None = None
    ) -> Iterator[Delta | Completion]:
        self._scheduler.finish(generation)
        completion = generation.completion(reason, error)
        if generation.streamed and (rest := generation.text.take_rest()):
            yield Delta(completion.id, rest, ())
        yield completion


@contextmanager
def _charged(rows: Sequence[Row]) -> Iterator[None]:
    """Share the time that the block takes among the requests of these rows, by their tokens."""
    begun = perf_counter()
    try:
        yield
    finally:
        seconds, tokens = perf_counter() - begun, sum(row.span for row in rows)
        for row in rows:
            row.generation.seconds += seconds * row.span / tokens


def _why(what: str, error: Exception | None) -> str:
    return f"{what} failed: {str(error) or type(error).__name__}"
