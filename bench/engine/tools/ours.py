"""treadle's own engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bench.engine.threads import THREADS
from treadle.engine import Delta, Engine, GenerationRequest


def load(precision: str, **options: Any) -> Ours:
    """The engine for 64 requests at once."""
    return Ours(
        Engine.load(
            "smollm2-135m-instruct",
            max_batch=64,
            threads=THREADS,
            cache_tokens=64 * 640,
            precision=precision,  # type: ignore[arg-type]
            **options,
        )
    )


class Ours:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def encode(self, text: str) -> Sequence[int]:
        return self._engine.tokenizer.encode(text)

    def answer(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], list[float]]:
        requests = [
            GenerationRequest(str(at), tuple(prompt), new, ignore_eos=True)
            for at, prompt in enumerate(prompts)
        ]
        firsts: dict[str, float] = {}
        ended: dict[str, list[int]] = {}
        for each in self._engine.stream(requests):
            if isinstance(each, Delta):
                firsts.setdefault(each.id, time.perf_counter())
            else:
                ended[each.id] = list(each.token_ids)
        return [ended[each.id] for each in requests], list(firsts.values())
