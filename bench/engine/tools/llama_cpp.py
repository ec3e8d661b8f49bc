"""llama.cpp by its C interface, with slots as its server has them: a free one takes the next request."""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.engine.threads import THREADS
from bench.engine.weights import gguf_of

SLOTS, LONGEST, AT_ONCE = 16, 512, 2048


def load(precision: str) -> LlamaCpp:
    """The model, and a context for 16 requests at once."""
    import llama_cpp

    llama_cpp.llama_log_set(_SILENT, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        str(gguf_of(precision)).encode(), llama_cpp.llama_model_default_params()
    )
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx, settings.n_batch, settings.n_seq_max = SLOTS * LONGEST, AT_ONCE, SLOTS
    settings.n_threads = settings.n_threads_batch = THREADS
    return LlamaCpp(llama_cpp, model, llama_cpp.llama_init_from_model(model, settings))


@dataclass
class _Slot:
    """One request: the tokens that are not computed yet, and how many are."""

    number: int
    request: int
    tokens: list[int]
    computed: int = 0
    answer: list[int] = field(default_factory=list)


class LlamaCpp:
    def __init__(self, library: Any, model: Any, context: Any) -> None:
        self._library = library
        self._vocabulary = library.llama_model_get_vocab(model)
        self._width = library.llama_vocab_n_tokens(self._vocabulary)
        self._context = context
        self._batch = library.llama_batch_init(AT_ONCE, 0, 1)

    def encode(self, text: str) -> Sequence[int]:
        said = text.encode()
        room = (self._library.llama_token * len(said))()
        count = self._library.llama_tokenize(self._vocabulary, said, len(said), room, len(said), False, False)
        return list(room[:count])

    def answer(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], list[float]]:
        waiting = deque(enumerate(prompts))
        free = list(range(SLOTS))
        running: list[_Slot] = []
        answers: list[list[int]] = [[] for _ in prompts]
        firsts: list[float] = []
        while waiting or running:
            while waiting and free:
                running.append(_Slot(free.pop(), *waiting.popleft()))
            for slot, token in self._step(running):
                if not slot.answer:
                    firsts.append(time.perf_counter())
                slot.answer.append(token)
                slot.tokens = [token]
                if len(slot.answer) == new:
                    answers[slot.request] = slot.answer
                    self._forget(slot)
                    free.append(slot.number)
            running = [slot for slot in running if len(slot.answer) < new]
        return answers, firsts

    def _step(self, slots: list[_Slot]) -> Iterator[tuple[_Slot, int]]:
        """One batch; the likeliest token of each slot that had room in it."""
        taken, ends = [], []
        self._batch.n_tokens = 0
        for slot in sorted(slots, key=lambda each: len(each.tokens)):
            if self._batch.n_tokens + len(slot.tokens) <= AT_ONCE:
                self._add(slot)
                taken.append(slot)
                ends.append(self._batch.n_tokens - 1)
        if code := self._library.llama_decode(self._context, self._batch):
            raise SystemExit(f"llama_decode failed with {code}")
        for slot, end in zip(taken, ends, strict=True):
            scores = self._library.llama_get_logits_ith(self._context, end)
            yield slot, int(np.ctypeslib.as_array(scores, (self._width,)).argmax())

    def _add(self, slot: _Slot) -> None:
        batch = self._batch
        for token in slot.tokens:
            at = batch.n_tokens
            batch.token[at], batch.pos[at], batch.logits[at] = token, slot.computed, False
            batch.n_seq_id[at], batch.seq_id[at][0] = 1, slot.number
            batch.n_tokens, slot.computed = at + 1, slot.computed + 1
        batch.logits[batch.n_tokens - 1] = True

    def _forget(self, slot: _Slot) -> None:
        memory = self._library.llama_get_memory(self._context)
        self._library.llama_memory_seq_rm(memory, slot.number, -1, -1)


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def _SILENT(level: int, text: bytes, data: int) -> None:  # noqa: N802 - it is a constant for the library
    """What it tells goes nowhere."""
