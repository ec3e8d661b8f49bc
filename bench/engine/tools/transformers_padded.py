"""transformers as it comes: `generate` over padded batches of 16, sorted by length."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from bench.engine.threads import THREADS
from bench.engine.weights import folder_of

AT_ONCE = 16


def load(precision: str) -> Padded:
    """The model and its tokenizer."""
    return Padded(*load_model(precision))


def load_model(precision: str, **options: Any) -> tuple[Any, Any]:
    """A model of transformers and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(THREADS)
    folder = folder_of(precision)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=getattr(torch, precision), local_files_only=True, **options
    )
    model.generation_config.eos_token_id = None  # texts go on to their last token
    return model.eval(), tokenizer


class Padded:
    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer

    def encode(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def answer(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], list[float]]:
        order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
        answers: list[list[int]] = [[] for _ in prompts]
        firsts: list[float] = []
        for start in range(0, len(order), AT_ONCE):
            chosen = order[start : start + AT_ONCE]
            times: list[float] = []
            for at, tokens in zip(
                chosen, self._batch([prompts[at] for at in chosen], new, times), strict=True
            ):
                answers[at] = tokens
            firsts += times[:1] * len(chosen)
        return answers, firsts

    def _batch(self, prompts: list[list[int]], new: int, times: list[float]) -> list[list[int]]:
        """`times` is told when each token was there."""
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(each)) + each for each in prompts])
        mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in prompts])

        def never(found: torch.Tensor, _scores: object, **_: object) -> torch.Tensor:
            times.append(time.perf_counter())
            return torch.zeros(len(found), dtype=torch.bool)

        with torch.inference_mode():
            out = self._model.generate(
                ids,
                attention_mask=mask,
                max_new_tokens=new,
                do_sample=False,
                pad_token_id=0,
                stopping_criteria=[never],
            )
        tokens: list[list[int]] = out[:, longest:].tolist()
        return tokens
