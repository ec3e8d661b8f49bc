"""Prompts of real English, and what transformers goes on with after them."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import treadle.experiment

Prompt = tuple[int, ...]
SPEECHES = Path(str(treadle.experiment.__file__)).parent / "corpora/state_of_the_union.jsonl.gz"


class Said(NamedTuple):
    """The tokens after one prompt, and `logits`, float32 (tokens, vocabulary), that each was picked from."""

    tokens: tuple[int, ...]
    logits: Tensor


def english(count: int) -> str:
    """The first so many characters of the corpus."""
    with gzip.open(SPEECHES, "rt", encoding="utf-8") as lines:
        speeches, size = [], 0
        while size < count:
            speeches.append(json.loads(next(lines))["text"])
            size += len(speeches[-1])
    return "\n".join(speeches)[:count]


def english_prompts(encode: Callable[[str], Sequence[int]], sizes: Sequence[int]) -> list[Prompt]:
    """Pieces of the corpus of so many tokens; of three, the third begins as the second does."""
    ids = encode(english(8 * sum(sizes)))
    prompts: list[Prompt] = []
    start = 0
    for at, size in enumerate(sizes):
        common = prompts[-1][: size * 2 // 3] if at % 3 == 2 else ()
        end = start + size - len(common)
        prompts.append((*common, *ids[start:end]))
        start = end
    return prompts


def greedy(model: Any, prompts: Sequence[Prompt], new: int) -> list[Said]:
    """What transformers generates; sixteen prompts of like sizes at a time, for speed."""
    by_size = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    found: dict[int, Said] = {}
    for first in range(0, len(prompts), 16):
        places = by_size[first : first + 16]
        found |= zip(places, _greedy_padded(model, [prompts[at] for at in places], new), strict=True)
    return [found[at] for at in range(len(prompts))]


def _greedy_padded(model: Any, prompts: Sequence[Prompt], new: int) -> list[Said]:
    """All at once, padded on the left."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    with torch.no_grad():
        out = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=new,
            do_sample=False,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
        )
    logits = torch.stack(out.logits, dim=1)
    rows = out.sequences[:, longest:].tolist()
    return [Said(tuple(row), logits[at]) for at, row in enumerate(rows)]
