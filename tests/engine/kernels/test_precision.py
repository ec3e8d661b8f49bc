"""How far the precisions are from the exact model, on real weights and a fixed text."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import kl_div

from tests.engine.kernels.passes import run
from treadle.engine.catalog import locate
from treadle.engine.models.build import Build, Precision
from treadle.engine.models.llama_family import load_llama
from treadle.engine.tokenizer import load_tokenizer
from treadle.engine.weights import open_checkpoint

TEXT = (
    "The capital of France is Paris, which lies on the Seine. In 1848, gold was found in California, and "
    "people came from all over the world to dig for it: most of them found none.\n\ndef fibonacci(n):\n"
    "    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n\nWater boils at a "
    "temperature of 100 degrees; ice, on the other hand, melts at 0 degrees. 1, 1, 2, 3, 5, 8, 13, 21, 34"
)


def scores(build: Build) -> Tensor:
    """(tokens, vocabulary): the score of each next token, after each token of the text."""
    checkpoint = open_checkpoint(locate("smollm2-135m-instruct"))
    ids = load_tokenizer(checkpoint).encode(TEXT)
    found = run(load_llama(checkpoint, build), [[(0, 60)], [(0, len(ids) - 63)], *[[(0, 1)]] * 3], ids)
    return torch.stack(list(found.values()))


@pytest.fixture(scope="module")
def exact() -> Tensor:
    """By torch in float32."""
    return scores(Build(kernels="torch"))


def test_compiled_float32_is_exact(exact: Tensor) -> None:
    """The same scores, and the same likeliest token everywhere."""
    got = scores(Build(kernels="native"))
    assert (got - exact).abs().max() / exact.abs().max() < 1e-5
    assert torch.equal(got.argmax(dim=-1), exact.argmax(dim=-1))


@pytest.mark.parametrize(("precision", "most"), [("bfloat16", 0.002), ("int8", 0.03)])
def test_rounded_precisions_predict_nearly_the_same(exact: Tensor, precision: Precision, most: float) -> None:
    """Mean divergence of the next token's chances (Kullback-Leibler, in nats) from the exact ones."""
    got = scores(Build(precision, "native"))
    told = kl_div(got.log_softmax(-1), exact.log_softmax(-1), log_target=True, reduction="none").sum(-1)
    assert 0 < told.mean() < most
