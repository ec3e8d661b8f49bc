"""The engine's face: load a model once, generate for any number of requests."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count, islice

from treadle.engine.catalog import locate
from treadle.engine.generation import Generation
from treadle.engine.intake import Intake
from treadle.engine.loop import Loop
from treadle.engine.models.architectures import LanguageModel, find_language_model
from treadle.engine.models.build import Build, Kernels, Precision
from treadle.engine.node import Node, build_node
from treadle.engine.requests import Completion, Delta, GenerationRequest
from treadle.engine.room import check_room
from treadle.engine.scheduler import Preemption, Scheduler
from treadle.engine.threads import set_threads
from treadle.engine.tokenizer import Tokenizer, load_tokenizer
from treadle.engine.weights import open_checkpoint
from treadle.errors import ArgumentError, EngineError
from treadle.kernel import Unwind

_PAGE_SIZE = 16
# One count for all engines: two that share a node must not give two requests one name.
_numbers = count()


class Engine:
    """A loaded model that generates text, many requests at once. Not for use by several threads.

    Use `Engine.load`; the constructor takes the parts of an engine that were built apart.
    """

    def __init__(
        self,
        node: Node,
        tokenizer: Tokenizer,
        *,
        max_batch: int = 16,
        token_budget: int = 512,
        preemption: Preemption = "never",
        plan_ahead: bool = False,
    ) -> None:
        ledger = node.cache.ledger
        self.node = node
        self.tokenizer = tokenizer
        self._intake = Intake(tokenizer, node.model.config.context, ledger.total * ledger.page_size)
        self._scheduler = Scheduler(
            node, max_batch=max_batch, token_budget=token_budget, preemption=preemption
        )
        self._loop = Loop(node, self._scheduler, plan_ahead=plan_ahead)
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
        prefix_cache: bool = True,
        preemption: Preemption = "never",
        host_tokens: int = 0,
        precision: Precision = "float32",
        kernels: Kernels = "auto",
        plan_ahead: bool = False,
        buckets: Sequence[int] = (),
    ) -> Engine:
        """Load a model from a GGUF file or a Hugging Face folder, or by a name: `smollm2-135m-instruct`.

        Args:
            model: path of a file or of a folder, or a name.
            max_batch: requests that run at once.
            threads: of torch, for the whole process; None leaves the setting alone.
            token_budget: tokens of one step; a longer prompt is computed in chunks.
            cache_tokens: room for keys and values; None gives the model's context, or 512 a request
                when that is more.
            prefix_cache: keep keys and values while there is room, for texts that begin alike.
            preemption: `never` starts a request when there is room for all its tokens; else it starts when
                there is room for its prompt, and when there is no more, the youngest makes room: it gives
                its own back and is computed again later (`recompute`), or its own waits elsewhere
                (`offload`), as far as there is room there.
            host_tokens: room for what is offloaded, in tokens; 0 without `offload`.
            precision: float32 is exact; see `Build` for bfloat16 and int8.
            kernels: auto compiles code for this processor where it can; see `Build`.
            plan_ahead: plan each step on a thread while the one before it computes.
            buckets: sizes of batches, as (1, 2, 4, 8, 16). Padding rows fill a step in which every request
                decodes up to the next size, so that it can be captured; only with `torch` kernels.

        Raises:
            UnknownNameError: a name, an architecture or a vocabulary that is not known.
            UsageError: the package that carries a named model is not installed, it generates no text, or
                there is nothing at the path.
            ArtifactError: the file is truncated, or does not fit what it says.
            ArgumentError: a limit out of range, a cache that does not fit into memory, or options that
                exclude each other.
            EngineError: `native` kernels were asked for, and cannot be had.
        """
        if host_tokens < 0 or (preemption == "offload") != (host_tokens > 0):
            raise ArgumentError(
                "preemption by offload needs host_tokens above 0, and nothing else has a use for them: "
                f"got {preemption!r} and {host_tokens}"
            )
        set_threads(threads)
        checkpoint = open_checkpoint(locate(model))
        load, tokenizer = find_language_model(checkpoint), load_tokenizer(checkpoint)
        loaded = load(checkpoint, Build(precision, kernels))
        tokens = max(loaded.config.context, 512 * max_batch) if cache_tokens is None else cache_tokens
        node = _node(loaded, tokens, prefix_cache, host_tokens, buckets)
        return cls(
            node,
            tokenizer,
            max_batch=max_batch,
            token_budget=token_budget,
            preemption=preemption,
            plan_ahead=plan_ahead,
        )

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
        """End the requests of that id that were drawn, before the next step; call it between completions.

        Each gives a completion with `finish_reason="abort"` and what it has so far. An unknown id is no
        error: its request may just have ended.
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


def _node(
    model: LanguageModel, tokens: int, prefix_cache: bool, host_tokens: int, buckets: Sequence[int]
) -> Node:
    check_room(model, tokens + host_tokens)
    try:
        return build_node(
            model,
            pages=-(-tokens // _PAGE_SIZE),
            page_size=_PAGE_SIZE,
            prefix_cache=prefix_cache,
            host_pages=-(-host_tokens // _PAGE_SIZE),
            buckets=buckets,
        )
    except EngineError:
        raise
    except (MemoryError, RuntimeError) as error:  # torch has no kind of its own for it
        raise ArgumentError(
            f"a cache for {tokens + host_tokens:,} tokens does not fit into the memory that is free: "
            "load with fewer cache_tokens"
        ) from error
