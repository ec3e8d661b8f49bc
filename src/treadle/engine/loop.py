"""The walk of one engine step.

    schedule   who runs, and with how many tokens
    declare    what each resource has to do
    admit      every resource reserves its part, or none does; for want of room the youngest may have to wait
    plan       slots, positions, what each token may look at, how each row is sampled
    forward    the model computes; keys and values land in the planned slots
    sample     a token for each row that has all of its tokens computed
    commit     what was reserved is used
    extend     pages that are full by now can be found by others that begin alike
    finish     each new token ends its request, or the request goes on

A pass that fails takes its own rows down and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import torch

from treadle.engine.generation import Generation, Row
from treadle.engine.node import Node
from treadle.engine.requests import Completion, Delta, FinishReason
from treadle.engine.resources.sampling import Pick
from treadle.engine.resources.step import Refusal, SubmoduleStep
from treadle.engine.scheduler import Scheduler
from treadle.errors import EngineError
from treadle.kernel import Unwind


class Loop:
    """Turns the requests of one scheduler step by step."""

    def __init__(self, node: Node, scheduler: Scheduler) -> None:
        self._node = node
        self._scheduler = scheduler

    def step(self) -> list[Delta | Completion]:
        """One step for all that run; returns those that ended in it, and what it added to streamed ones.

        Raises:
            EngineError: requests wait and none can run, because somebody else holds the node's cache.
        """
        rows = self._scheduler.schedule()
        unopened = self._scheduler.unopened
        if not rows and not unopened:
            raise EngineError("no request can run: the cache of this node is held by somebody else")
        told = [self._end(each, "error", _why("opening it", each.failure)) for each in unopened]
        return list(chain(*told, self._advance(rows)))

    def abort(self, request_id: str) -> list[Delta | Completion]:
        """End the requests of that name, waiting or running, with what they have so far."""
        return list(chain(*(self._end(each, "abort") for each in self._scheduler.named(request_id))))

    def _advance(self, rows: Sequence[Row]) -> Iterator[Delta | Completion]:
        try:
            rows, picks = self._pass(rows) if rows else (rows, ())
        except Exception as error:  # noqa: BLE001 - torch raises IndexError and MemoryError as well
            # One that made room before the pass failed has no part in it.
            for generation in [row.generation for row in rows if self._scheduler.runs(row.generation)]:
                yield from self._end(generation, "error", _why("the forward pass", error))
        else:
            yield from self._finish_or_go_on(rows, picks)

    def _pass(self, rows: Sequence[Row]) -> tuple[Sequence[Row], tuple[Pick | None, ...]]:
        """The rows that there was room for, and what was picked for each of them that samples."""
        runner = self._node.runner
        rows, step = self._admit(rows)
        with Unwind() as unwind, torch.inference_mode():
            unwind.push(runner.rollback_admit, step)
            runner.plan(step)
            scores = self._node.forward(step, rows)
            picks = self._node.sample(step, scores) if len(scores) else ()
            runner.commit(step)
            unwind.release()
        self._node.extend(rows, picks)
        return rows, picks

    def _admit(self, rows: Sequence[Row]) -> tuple[Sequence[Row], SubmoduleStep]:
        """An admitted step of these rows, without those that had to make room for others."""
        while True:
            step = self._node.declare(rows)
            outcome = self._node.runner.admit(step)
            if outcome.ok:
                return rows, step
            if outcome.reason is not Refusal.ALLOCATION_FAILED or not self._scheduler.preempt():
                # What is opened can be carried to its end, the oldest at least.
                raise EngineError(f"resource {outcome.key!r} refused a promised step: {outcome.reason}")
            rows = [row for row in rows if self._scheduler.runs(row.generation)]

    def _finish_or_go_on(
        self, rows: Sequence[Row], picks: Sequence[Pick | None]
    ) -> Iterator[Delta | Completion]:
        fresh = iter(picks)
        for row in rows:
            samples = row.samples
            row.generation.computed += row.span
            if samples:
                yield from self._accept(row.generation, next(fresh))

    def _accept(self, generation: Generation, pick: Pick | None) -> Iterator[Delta | Completion]:
        """Take a new token in; tell it when the request is streamed, and the completion after the last."""
        if pick is None:
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


def _why(what: str, error: Exception | None) -> str:
    return f"{what} failed: {str(error) or type(error).__name__}"
