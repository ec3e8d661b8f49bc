"""The compiled pass against the same model in torch."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.kernels.passes import Steps, config, run, weights
from treadle.engine.engine import Engine
from treadle.engine.kernels.library import shared_library
from treadle.engine.models.build import Build, Kernels, Precision
from treadle.engine.models.building import build_llama
from treadle.engine.models.llama import Llama, LlamaConfig
from treadle.engine.models.native_llama import NativeLlama
from treadle.engine.node import build_node
from treadle.engine.requests import GenerationRequest
from treadle.errors import ArgumentError, EngineError

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
# Prompts whole and in chunks over page borders, rows that decode beside them, a row of no token.
MIXED: Steps = [[(0, 5), (1, 37)], [(0, 1), (1, 20), (2, 1), (3, 150)], [(0, 1), (1, 0), (2, 15), (3, 1)]]


def native(sizes: LlamaConfig, precision: Precision = "float32", seed: int = 0) -> NativeLlama:
    return NativeLlama(sizes, weights(seed), shared_library(), precision=precision)


def assert_close(sizes: LlamaConfig, steps: Steps, precision: Precision, tolerance: float) -> None:
    """Within a share of the largest score."""
    got = run(native(sizes, precision), steps)
    expected = run(Llama(sizes, weights(), precision=precision), steps)
    assert got.keys() == expected.keys()
    for place, scores in expected.items():
        torch.testing.assert_close(got[place], scores, rtol=0, atol=tolerance * float(scores.abs().max()))


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"tied": False, "vocabulary": 33},
        {"qkv_bias": True, "output_bias": True},
        {"heads": 4, "kv_heads": 4, "head_width": 80, "vocabulary": 1},
        {"heads": 7, "kv_heads": 1, "head_width": 64, "width": 16, "feed_forward": 16},
        {"heads": 48, "kv_heads": 1, "head_width": 16},
        {"heads": 2, "kv_heads": 1, "head_width": 256, "layers": 1},
    ],
    ids=["plain", "untied", "biases", "no groups", "narrow", "one key head", "wide heads"],
)
def test_float32_equals_torch_for_all_sizes(other: dict[str, int | bool]) -> None:
    """Panels, groups of heads and widths that do not divide evenly."""
    assert_close(config(**other), MIXED, "float32", 2e-5)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_float32_equals_torch_for_any_cut_of_any_prompts(data: st.DataObject) -> None:
    """How the scheduler mixes and cuts rows is not the model's business."""
    spans = st.lists(st.integers(0, 40), min_size=1, max_size=4)
    cuts = data.draw(st.lists(spans, min_size=1, max_size=4))
    steps = [
        [(rid, cut[at]) for rid, cut in enumerate(cuts) if at < len(cut)] for at in range(max(map(len, cuts)))
    ]
    assert_close(config(layers=1), steps, "float32", 2e-5)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_rounded_precisions_are_as_near_to_the_exact_model_as_torch(precision: Precision) -> None:
    """Both round the same weights and inputs; torch rounds the results of products too."""
    exact, by_torch, compiled = (
        torch.stack(list(run(model, MIXED).values()))
        for model in (
            Llama(config(), weights()),
            Llama(config(), weights(), precision=precision),
            native(config(), precision),
        )
    )
    found, allowed = (float((each - exact).abs().mean()) for each in (compiled, by_torch))
    assert found < 1.1 * allowed
    assert allowed < 0.1 * float(exact.abs().mean())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_neither_batch_mates_nor_chunks_nor_threads_change_a_bit(precision: Precision) -> None:
    """Sums are made in one order: greedy texts cannot depend on who else is served."""
    model = native(config(), precision)
    together = run(model, MIXED)
    alone = run(model, [[(3, 1)] for _ in range(40)])
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        threaded = run(model, MIXED)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(together[place], scores) for place, scores in alone.items())
    assert all(torch.equal(together[place], scores) for place, scores in threaded.items())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_numbers_that_are_none_stay_visible_in_their_row_alone(precision: Precision, poison: float) -> None:
    """Rounded to a byte, a NaN would be a number like any other."""
    sizes = config(tied=False)
    load = weights()
    embedding = load("model.embed_tokens.weight", (sizes.vocabulary, sizes.width)).clone()
    embedding[7, 3] = poison  # the first token of request 0

    def damaged(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        return embedding if name == "model.embed_tokens.weight" else load(name, shape)

    model = NativeLlama(sizes, damaged, shared_library(), precision=precision)
    found = run(model, [[(0, 1), (5, 1)], [(0, 1), (5, 1)]])
    assert found[0, 0].isnan().all()
    assert found[0, 1].isnan().all()
    assert found[5, 0].isfinite().all()
    assert found[5, 1].isfinite().all()


def test_sizes_that_the_library_cannot_run_are_refused_or_run_by_torch() -> None:
    """A head of eight numbers is half a vector."""
    sizes = config(head_width=8)
    assert isinstance(build_llama(sizes, weights(), Build()), Llama)
    with pytest.raises(EngineError, match="head_width 8 is no multiple of 16"):
        build_llama(sizes, weights(), Build(kernels="native"))


@pytest.mark.parametrize("token", [-1, 67])
def test_a_token_outside_the_vocabulary_is_refused(token: int) -> None:
    """Compiled code would read whatever lies there."""
    with pytest.raises(EngineError, match="tokens must be from 0 and below 67"):
        run(native(config()), [[(0, 1)]], [token])


def test_pages_of_another_size_are_refused() -> None:
    """A page is one vector of scores."""
    with pytest.raises(ArgumentError, match="pages of 16 tokens, got 4"):
        build_node(native(config()), pages=8, page_size=4)


@pytest.mark.parametrize("max_batch", [1, 4])
def test_an_engine_writes_the_same_texts_by_torch_and_compiled(
    write_toy: Callable[..., Path], max_batch: int
) -> None:
    """Through all of the engine: prompts in chunks, pages that others had before, rows that come and go."""
    path = str(write_toy(head_width=16, seed=5))

    def texts(kernels: Kernels) -> dict[str, tuple[int, ...]]:
        engine = Engine.load(path, max_batch=max_batch, token_budget=9, cache_tokens=160, kernels=kernels)
        asked = [GenerationRequest(str(at), "the tin " * (1 + at % 5), 6 + at) for at in range(9)]
        found = {each.id: each.token_ids for each in engine.generate(asked)}
        engine.node.runner.check_integrity()
        return found

    assert texts("native") == texts("torch")
