"""What the model's products alone take, by oneDNN with weights laid out once: no engine on it is faster.

In int8 that is one scale for all of a product's inputs, which nobody could use: a bound all the more.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from bench.engine.threads import THREADS

LAYERS, WIDTH, HEADS, FEED_FORWARD, VOCABULARY = 30, 576, 960, 1536, 49_152
DECODING, PROMPTS, STEP, NEW = 64, 6_400, 512, 64
_LAYER = ((HEADS, WIDTH), (WIDTH, WIDTH), (2 * FEED_FORWARD, WIDTH), (WIDTH, FEED_FORWARD))

Product = Callable[[int], object]
"""Of so many rows."""


def main() -> None:
    """Tokens/s of the case `many`, were there nothing but products."""
    turns = 1 if sys.argv[1] == "--small" else 9
    torch.set_num_threads(THREADS)
    make = _rounded if (name := sys.argv[-1]) == "int8" else _exact(name)
    layers = [make(*shape) for _ in range(LAYERS) for shape in _LAYER]
    head = make(VOCABULARY, WIDTH)
    with torch.inference_mode():
        decode, prompts = (_median(layers, rows, turns) for rows in (DECODING, STEP))
        scores = _median([head], DECODING, turns)
    seconds = PROMPTS / STEP * prompts + (NEW - 1) * decode + NEW * scores
    tokens = DECODING * NEW / seconds
    print(json.dumps({"part": "products", "tokens": tokens, "decode": decode + scores, "prompts": prompts}))


def _median(products: list[Product], rows: int, turns: int) -> float:
    """Seconds for all of them, one after another, so that their weights come from memory."""
    seconds = []
    for _ in range(turns + 1):
        began = perf_counter()
        for product in products:
            product(rows)
        seconds.append(perf_counter() - began)
    return statistics.median(seconds[1:])


def _exact(name: str) -> Callable[[int, int], Product]:
    kind = torch.bfloat16 if name == "bf16" else torch.float32

    def make(outputs: int, columns: int) -> Product:
        weight = torch.randn(outputs, columns).to(kind)
        layout = torch.ops.mkldnn._reorder_linear_weight(weight, DECODING)
        inputs: dict[int, Tensor] = {rows: torch.randn(rows, columns).to(kind) for rows in (DECODING, STEP)}
        multiply = torch.ops.mkldnn._linear_pointwise.default
        return lambda rows: multiply(inputs[rows], layout, None, "none", [], "")

    return make


def _rounded(outputs: int, columns: int) -> Product:
    weight = torch.randint(-127, 128, (outputs, columns), dtype=torch.int8)
    layout = torch.ops.onednn.qlinear_prepack(weight, [DECODING, columns])
    inputs = {rows: torch.randint(0, 256, (rows, columns), dtype=torch.uint8) for rows in (DECODING, STEP)}
    scales, zeros = torch.ones(outputs), torch.zeros(outputs, dtype=torch.int64)
    multiply = torch.ops.onednn.qlinear_pointwise.default
    kind = torch.float32
    return lambda rows: multiply(
        inputs[rows], 1.0, 128, layout, scales, zeros, None, 1.0, 0, kind, "none", [], ""
    )


if __name__ == "__main__":
    main()
