"""The walk of one engine step.

    schedule   who runs, and with how many tokens
    declare    what each resource has to do
    admit      every resource reserves its part, or none does
    plan       slots, positions, what each token may look at, how each row is sampled
    forward    the model computes; keys and values land in the planned slots
    sample     a token for each row that has all of its tokens computed
    commit     what was reserved is used
    finish     each new token ends its request, or the request goes on

A pass that fails takes its own rows down and no others.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from treadle.engine.generation import Generation, Row
from treadle.engine.node import Node
from treadle.engine.requests import Completion, FinishReason
from treadle.engine.resources.step import SubmoduleStep
from treadle.engine.scheduler import Scheduler
from treadle.engine.tokenizer import Tokenizer
from treadle.errors import EngineError
from treadle.kernel import Unwind


class Loop:
    """Turns the requests of one scheduler step by step."""

    def __init__(self, node: Node, tokenizer: Tokenizer, scheduler: Scheduler) -> None:
        self._node = node
        self._tokenizer = tokenizer
        self._scheduler = scheduler

    def step(self) -> list[Completion]:
        """One step for all that run; returns those that ended in it.

        Raises:
            EngineError: requests wait and none can run, because somebody else holds the node's cache.
        """
        rows = self._scheduler.schedule()
        unopened = [
            self._end(each, "error", _why("opening it", each.failure)) for each in self._scheduler.unopened
        ]
        if not rows and not unopened:
            raise EngineError("no request can run: the cache of this node is held by somebody else")
        return unopened + self._advance(rows)

    def _advance(self, rows: Sequence[Row]) -> list[Completion]:
        try:
            tokens = self._pass(rows) if rows else ()
        except Exception as error:  # noqa: BLE001 - torch raises IndexError and MemoryError as well
            return [self._end(row.generation, "error", _why("the forward pass", error)) for row in rows]
        return self._finish_or_go_on(rows, tokens)

    def _pass(self, rows: Sequence[Row]) -> tuple[int | None, ...]:
        """A token for each row that samples."""
        runner = self._node.runner
        step = self._node.declare(rows)
        self._admit(step)
        with Unwind() as unwind, torch.inference_mode():
            unwind.push(runner.rollback_admit, step)
            runner.plan(step)
            scores = self._node.forward(step, rows)
            tokens = self._node.sample(step, scores) if len(scores) else ()
            runner.commit(step)
            unwind.release()
        return tokens

    def _admit(self, step: SubmoduleStep) -> None:
        outcome = self._node.runner.admit(step)
        if not outcome.ok:
            # The scheduler opens only what can be carried to its end.
            raise EngineError(f"resource {outcome.key!r} refused a step that was promised: {outcome.reason}")

    def _finish_or_go_on(self, rows: Sequence[Row], tokens: Sequence[int | None]) -> list[Completion]:
        fresh = iter(tokens)
        ended = []
        for row in rows:
            samples = row.samples
            row.generation.computed += row.span
            if samples and (completion := self._accept(row.generation, next(fresh))):
                ended.append(completion)
        return ended

    def _accept(self, generation: Generation, token: int | None) -> Completion | None:
        """Take a new token in; the completion when it was the last."""
        if token is None:
            return self._end(
                generation, "error", "the model's scores are not numbers: its weights may be damaged"
            )
        generation.tokens.append(token)
        if self._stops(generation):
            return self._end(generation, "stop")
        return self._end(generation, "length") if len(generation.tokens) == generation.limit else None

    def _stops(self, generation: Generation) -> bool:
        request = generation.request
        if generation.tokens[-1] == self._tokenizer.end and not request.ignore_eos:
            return True
        if not request.stop:  # most requests: their text is decoded once, at the end
            return False
        return _cut(self._tokenizer.decode(generation.new_tokens), request.stop) is not None

    def _end(self, generation: Generation, reason: FinishReason, error: str | None = None) -> Completion:
        self._scheduler.finish(generation)
        text = self._tokenizer.decode(generation.new_tokens)
        cut = _cut(text, generation.request.stop)
        return Completion(
            id=generation.request.id,
            text=text[:cut],
            token_ids=tuple(generation.new_tokens),
            prompt_tokens=generation.prompt_tokens,
            finish_reason=reason,
            error=error,
        )


def _why(what: str, error: Exception | None) -> str:
    return f"{what} failed: {str(error) or type(error).__name__}"


def _cut(text: str, stops: Sequence[str]) -> int | None:
    """Where the first stop string begins, None when there is none."""
    return min((text.index(stop) for stop in stops if stop in text), default=None)
