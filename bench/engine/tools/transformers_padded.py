"""transformers as it comes: `generate` over padded batches of 16, sorted by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from bench.engine.weights import folder_of

AT_ONCE = 16


def load(precision: str) -> Padded:
    """The model and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(2)
    folder = folder_of(precision)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=getattr(torch, precision), local_files_only=True
    )
    model.generation_config.eos_token_id = None  # texts go on to their last token
    return Padded(model.eval(), tokenizer)


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
        for start in range(0, len(order), AT_ONCE):
            chosen = order[start : start + AT_ONCE]
            for at, tokens in zip(chosen, self._batch([prompts[at] for at in chosen], new), strict=True):
                answers[at] = tokens
        return answers, []  # it does not tell when the first token came

    def _batch(self, prompts: list[list[int]], new: int) -> list[list[int]]:
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(each)) + each for each in prompts])
        mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in prompts])
        with torch.inference_mode():
            out = self._model.generate(
                ids, attention_mask=mask, max_new_tokens=new, do_sample=False, pad_token_id=0
            )
        tokens: list[list[int]] = out[:, longest:].tolist()
        return tokens
