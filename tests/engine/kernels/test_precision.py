"""How far the precisions are from the exact model, on real weights and a fixed text."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from tests.engine.kernels.passes import run
from tests.engine.reference import english
from treadle.engine.catalog import locate
from treadle.engine.models.build import Build, Kernels, Precision
from treadle.engine.models.llama_family import load_llama
from treadle.engine.tokenizer import load_tokenizer
from treadle.engine.weights import open_checkpoint

ROUNDED: list[tuple[Precision, float]] = [("bfloat16", 0.002), ("int8", 0.03)]
TEXT = (
    "The capital of France is Paris, which lies on the Seine. In 1848, gold was found in California, and "
    "people came from all over the world to dig for it: most of them found none.\n\ndef fibonacci(n):\n"
    "    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n\nWater boils at a "
    "temperature of 100 degrees; ice, on the other hand, melts at 0 degrees. 1, 1, 2, 3, 5, 8, 13, 21, 34"
)


LONG = english(4000)


def tokens_of(text: str) -> list[int]:
    return load_tokenizer(open_checkpoint(locate("smollm2-135m-instruct"))).encode(text)


def scores(build: Build, text: str = TEXT) -> Tensor:
    """(tokens, vocabulary): the score of each next token, after each token of the text."""
    model = load_llama(open_checkpoint(locate("smollm2-135m-instruct")), build)
    ids = tokens_of(text)
    found = run(model, [[(0, 60)], [(0, len(ids) - 63)], *[[(0, 1)]] * 3], ids)
    return torch.stack(list(found.values()))


def divergence(got: Tensor, exact: Tensor) -> float:
    """Mean, over the tokens, of the next token's chances from the exact ones (Kullback-Leibler, in nats)."""
    told = kl_div(got.log_softmax(-1), exact.log_softmax(-1), log_target=True, reduction="none")
    return float(told.sum(-1).mean())


def perplexity(scores: Tensor, text: str) -> float:
    """Among how many equally likely tokens the model hesitates, on average, before each of the text."""
    return float(cross_entropy(scores[:-1], torch.tensor(tokens_of(text)[1:])).exp())


@pytest.fixture(scope="module")
def exact() -> Tensor:
    """By torch in float32."""
    return scores(Build(kernels="torch"))


@pytest.fixture(scope="module")
def exact_of_long() -> Tensor:
    """By torch in float32, of the long text."""
    return scores(Build(kernels="torch"), LONG)


def test_compiled_float32_is_exact(exact: Tensor) -> None:
    """The same scores, and the same likeliest token everywhere."""
    got = scores(Build(kernels="native"))
    assert (got - exact).abs().max() / exact.abs().max() < 1e-5
    assert torch.equal(got.argmax(dim=-1), exact.argmax(dim=-1))


def assert_near(got: Tensor, exact: Tensor, text: str, most: float) -> None:
    found, before, after = divergence(got, exact), perplexity(exact, text), perplexity(got, text)
    assert 0 < found < most, f"KL {found:.5f}, perplexity {before:.3f} in float32, {after:.3f} in this"
    assert abs(after / before - 1) < 2 * most, f"perplexity {before:.3f} in float32, {after:.3f} in this"


@pytest.mark.parametrize(("precision", "most"), ROUNDED)
def test_rounded_precisions_predict_nearly_the_same(exact: Tensor, precision: Precision, most: float) -> None:
    """By compiled code; how far they are from float32 is what they are called an approximation for."""
    assert_near(scores(Build(precision, "native")), exact, TEXT, most)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["torch", "native"])
@pytest.mark.parametrize(("precision", "most"), ROUNDED)
def test_rounded_precisions_predict_nearly_the_same_on_a_long_text(
    exact_of_long: Tensor, precision: Precision, most: float, kernels: Kernels
) -> None:
    """Old English prose, by both ways to compute it."""
    assert_near(scores(Build(precision, kernels), LONG), exact_of_long, LONG, most)
