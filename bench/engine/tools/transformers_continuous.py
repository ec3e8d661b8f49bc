"""transformers with its continuous batching: `generate_batch` over a paged cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.engine.tools.transformers_padded import load_model

PAGE = 256
LONGEST = 512


def load(precision: str) -> Continuous:
    """The model, its tokenizer, and settings for 64 requests at once."""
    return Continuous(*load_model(precision, attn_implementation="sdpa"))


class Continuous:
    def __init__(self, model: Any, tokenizer: Any) -> None:
        from transformers import ContinuousBatchingConfig

        self._model = model
        self._tokenizer = tokenizer
        self._config = ContinuousBatchingConfig(
            page_size=PAGE, num_blocks=64 * -(-LONGEST // PAGE), max_batch_tokens=512
        )

    def encode(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def answer(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], list[float]]:
        from transformers import GenerationConfig

        greedy = GenerationConfig(max_new_tokens=new, do_sample=False, eos_token_id=-1, pad_token_id=0)
        found = self._model.generate_batch(
            prompts,
            generation_config=greedy,
            continuous_batching_config=self._config,
            record_timestamps=True,
            persistent_manager=True,
        )
        outputs = list(found.values())
        return [each.generated_tokens for each in outputs], [each.timestamps[0] for each in outputs]
