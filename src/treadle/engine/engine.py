"""The engine's face: load a model once, generate for any number of requests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import count, islice

import torch

from treadle.engine.catalog import locate
from treadle.engine.generation import Generation
from treadle.engine.intake import Intake
from treadle.engine.loop import Loop
from treadle.engine.models.llama import Llama, load_llama
from treadle.engine.node import Node, build_node
from treadle.engine.requests import Completion, Delta, GenerationRequest
from treadle.engine.scheduler import Scheduler
from treadle.engine.tokenizer import Tokenizer
from treadle.engine.weights import Checkpoint, open_gguf
from treadle.errors import ArgumentError, EngineError
from treadle.kernel import Registry, Unwind

_PAGE_SIZE = 16
# One count for all engines: two that share a node must not give two requests one name.
_numbers = count()

architectures: Registry[Callable[[Checkpoint], Llama]] = Registry("architecture")
architectures.register("llama", load_llama)


class Engine:
    """A loaded model that generates text, many requests at once. Not for use by several threads.

    Use `Engine.load`; the constructor takes the parts of an engine that were built apart.
    """

    def __init__(
        self, node: Node, tokenizer: Tokenizer, *, max_batch: int = 16, token_budget: int = 512
    ) -> None:
        ledger = node.cache.ledger
        self.node = node
        self.tokenizer = tokenizer
        self._intake = Intake(tokenizer, node.model.config.context, ledger.total * ledger.page_size)
        self._scheduler = Scheduler(node, max_batch=max_batch, token_budget=token_budget)
        self._loop = Loop(node, self._scheduler)
        self._unwanted: list[str] = []
        self._busy = False

    @classmethod
    def load(
        cls,
        model: str,
        *,
        max_batch: int = 16,
        threads: int | None = None,
        token_budget: int = 512,
        cache_tokens: int | None = None,
    ) -> Engine:
        """Load a model from a path to a .gguf, or by a name such as `smollm2-135m-instruct`.

        Args:
            model: path or name.
            max_batch: requests that run at once.
            threads: of torch, for the whole process; None leaves the setting alone.
            token_budget: tokens of one step; a longer prompt is computed in chunks.
            cache_tokens: room for keys and values; None gives the model's context, or 512 a request
                when that is more.

        Raises:
            UnknownNameError: a name, an architecture or a vocabulary that is not known.
            UsageError: the package that carries a named model is not installed.
            ArtifactError: the file is missing, truncated, or does not fit what it says.
            ArgumentError: a limit out of range.
        """
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads must be at least 1, got {threads}")
        checkpoint = open_gguf(locate(model))
        if threads is not None:
            torch.set_num_threads(threads)
        tokenizer = Tokenizer(checkpoint)
        loaded = architectures.get(checkpoint.value("general.architecture", str))(checkpoint)
        tokens = max(loaded.config.context, 512 * max_batch) if cache_tokens is None else cache_tokens
        return cls(_node(loaded, tokens), tokenizer, max_batch=max_batch, token_budget=token_budget)

    def generate(self, requests: Iterable[GenerationRequest]) -> Generator[Completion]:
        """Completions in the order in which they finish; requests are drawn as room appears.

        A request that cannot run gives a completion with `finish_reason="error"`; the others go on.
        Whatever ends the iteration, everything that ran is given back.

        Raises:
            EngineError: another `generate` or `stream` of this engine is not finished.
            ArgumentError: what was drawn is no request.
        """
        with closing(self._run(requests, streamed=False)) as told:
            yield from (each for each in told if isinstance(each, Completion))

    def stream(self, requests: Iterable[GenerationRequest]) -> Generator[Delta | Completion]:
        """As `generate`, and before the completion of each request its text, token by token.

        The texts of the deltas of a request make up the text of its completion.
        """
        return self._run(requests, streamed=True)

    def abort(self, request_id: str) -> None:
        """End the requests of that id that were drawn, before the next step; said between two completions.

        Each gives a completion with `finish_reason="abort"` and what it has so far. An id that no request
        bears is no error: it may have ended in this moment.
        """
        self._unwanted.append(request_id)

    def _run(self, requests: Iterable[GenerationRequest], *, streamed: bool) -> Generator[Delta | Completion]:
        if self._busy:
            raise EngineError("this engine is generating already: finish or close that iterator first")
        with Unwind() as unwind:
            self._busy = True
            unwind.push(setattr, self, "_busy", False)
            unwind.push(self._unwanted.clear)
            unwind.push(self._scheduler.close)
            # A caller who leaves is no error, behind which one of the clean-up could hide.
            with suppress(GeneratorExit):
                yield from self._turn(iter(requests), streamed)

    def _turn(self, source: Iterator[GenerationRequest], streamed: bool) -> Iterator[Delta | Completion]:
        while True:
            yield from self._abort_unwanted()
            yield from self._draw(source, streamed)
            if self._scheduler.idle:
                return
            yield from self._loop.step()

    def _abort_unwanted(self) -> Iterator[Delta | Completion]:
        while self._unwanted:
            yield from self._loop.abort(self._unwanted.pop())

    def _draw(self, source: Iterator[GenerationRequest], streamed: bool) -> Iterator[Completion]:
        """Take requests in while more can run; yields those that are refused."""
        while self._scheduler.can_add and (drawn := tuple(islice(source, 1))):
            taken = self._intake.take(drawn[0], next(_numbers), streamed=streamed)
            if isinstance(taken, Generation):
                self._scheduler.add(taken)
            else:
                yield taken


def _node(model: Llama, tokens: int) -> Node:
    try:
        return build_node(model, pages=-(-tokens // _PAGE_SIZE), page_size=_PAGE_SIZE)
    except (MemoryError, RuntimeError) as error:  # torch has no kind of its own for it
        raise ArgumentError(
            f"a cache for {tokens:,} tokens does not fit into memory ({error}): load with fewer cache_tokens"
        ) from error
