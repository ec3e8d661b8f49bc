"""How far each precision is from the reference, transformers in float32, on fixed texts.

Every token of the texts is predicted from those before it in its window. The divergence is that of Kullback
and Leibler from the reference's chances of the next token to these ones, in nats, the mean over all tokens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from bench.engine.threads import THREADS
from bench.engine.tools.transformers_padded import load_model
from bench.engine.workload import Prompt, english
from treadle.engine import Engine
from treadle.engine.forward import KV, SAMPLER
from treadle.engine.resources.kv_step import KvClaim
from treadle.engine.resources.step import ResourceStep, Segment, SubmoduleStep

WINDOWS, WIDTH, START = 16, 512, 12_000
_OURS = {
    "treadle, float32, torch alone": {"precision": "float32", "kernels": "torch"},
    "treadle, float32": {"precision": "float32"},
    "treadle, bf16": {"precision": "bfloat16"},
    "treadle, int8": {"precision": "int8"},
}
_REFERENCE = "transformers, float32"

Scores = Callable[[Prompt], Tensor]
"""Float32 (tokens, vocabulary) of the tokens."""


class Sums:
    """Of one contender, over all tokens."""

    def __init__(self) -> None:
        self.count, self.divergence, self.surprise, self.same = 0, 0.0, 0.0, 0

    def add(self, reference: Tensor, logs: Tensor, following: Tensor) -> None:
        """Logs of chances, (tokens, vocabulary), of a window, and the tokens that follow in it."""
        self.count += len(following)
        self.divergence += float((reference.exp() * (reference - logs)).sum(dtype=torch.float64))
        self.surprise -= float(logs.gather(1, following[:, None]).sum(dtype=torch.float64))
        self.same += int((reference.argmax(1) == logs.argmax(1)).sum())

    def told(self) -> dict[str, float]:
        """Means."""
        return {
            "divergence": self.divergence / self.count,
            "perplexity": float(torch.tensor(self.surprise / self.count).exp()),
            "same": self.same / self.count,
        }


def main() -> None:
    """A line for each."""
    windows = 1 if sys.argv[1] == "--small" else WINDOWS
    reference, tokenizer = _transformers("float32")
    others = dict(_others())
    sums = {name: Sums() for name in (_REFERENCE, *others)}
    ids = english(lambda text: tokenizer.encode(text, add_special_tokens=False))
    for start in range(START, START + windows * WIDTH, WIDTH):
        window = ids[start : start + WIDTH]
        following, expected = torch.tensor(window[1:]), _logs(reference(window))
        sums[_REFERENCE].add(expected, expected, following)
        for name, scores in others.items():
            sums[name].add(expected, _logs(scores(window)), following)
    for name, each in sums.items():
        print(json.dumps({"part": "accuracy", "row": name, "tokens": each.count, **each.told()}))


def _logs(scores: Tensor) -> Tensor:
    """Of the chances of the next token; what follows the last one is not known."""
    return torch.log_softmax(scores[:-1].float(), dim=1)


def _others() -> Iterator[tuple[str, Scores]]:
    yield "transformers, bf16", _transformers("bfloat16")[0]
    for name, options in _OURS.items():
        engine = Engine.load("smollm2-135m-instruct", threads=THREADS, cache_tokens=WIDTH, **options)  # type: ignore[arg-type]
        yield name, _ours(engine)


def _transformers(precision: str) -> tuple[Scores, Any]:
    model, tokenizer = load_model(precision)

    def scores(tokens: Prompt) -> Tensor:
        with torch.inference_mode():
            found: Tensor = model(torch.tensor([tokens])).logits[0]
        return found

    return scores, tokenizer


def _ours(engine: Engine) -> Scores:
    """All scores of a text, in one step of the engine's node."""
    node, runner = engine.node, engine.node.runner

    def scores(tokens: Prompt) -> Tensor:
        runner.ingest_request("text", {KV: KvClaim(len(tokens))})
        keys = (key for key in runner.keys_of(node.name) if key != SAMPLER)
        step = SubmoduleStep({key: ResourceStep() for key in keys}, (Segment("text", len(tokens)),))
        with torch.inference_mode():
            if not runner.admit(step).ok:
                raise SystemExit("the window does not fit into the cache")
            runner.plan(step)
            found = node.compute(torch.tensor(tokens), range(len(tokens)), step.ctx)
        runner.commit(step)
        runner.remove_request("text")
        return found

    return scores


if __name__ == "__main__":
    main()
