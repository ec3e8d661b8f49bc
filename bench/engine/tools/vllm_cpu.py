"""vLLM, its build for CPUs, in this process; its variables are set by the contender."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from bench.engine.weights import folder_of

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def load(precision: str, *, compiled: bool = True, prefixes: bool = True) -> Vllm:
    """The engine for 64 requests at once."""
    from vllm import LLM

    return Vllm(
        LLM(
            str(folder_of(precision)),
            dtype=precision,
            enforce_eager=not compiled,
            enable_prefix_caching=prefixes,
            max_num_seqs=64,
            max_model_len=1024,
            max_num_batched_tokens=2048,
        )
    )


class Vllm:
    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self._asked = 0

    def encode(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._llm.get_tokenizer().encode(text, add_special_tokens=False)
        return ids

    def answer(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], list[float]]:
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        engine = self._llm.llm_engine
        greedy = SamplingParams(temperature=0, max_tokens=new, ignore_eos=True)
        names = [f"{self._asked}-{at}" for at in range(len(prompts))]
        self._asked += 1
        for name, prompt in zip(names, prompts, strict=True):
            engine.add_request(name, TokensPrompt(prompt_token_ids=prompt), greedy)
        firsts: dict[str, float] = {}
        ended: dict[str, list[int]] = {}
        while engine.has_unfinished_requests():
            for each in engine.step():
                if each.outputs[0].token_ids:
                    firsts.setdefault(each.request_id, time.perf_counter())
                if each.finished:
                    ended[each.request_id] = list(each.outputs[0].token_ids)
        return [ended[name] for name in names], list(firsts.values())
