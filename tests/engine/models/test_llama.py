"""The model against transformers on toy weights, read from the same file by either side."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from treadle.engine.engine import Engine
from treadle.engine.generation import Generation, Row
from treadle.engine.models.architectures import LanguageModel
from treadle.engine.models.build import Build, Kernels
from treadle.engine.models.llama_family import load_llama
from treadle.engine.node import build_node
from treadle.engine.requests import GenerationRequest
from treadle.engine.text import GrowingText
from treadle.engine.weights import open_gguf
from treadle.engine.weights.gguf_checkpoint import paired_halves
from treadle.errors import ArtifactError


def reference(path: Path) -> Any:
    """A file as transformers reads it."""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    )
    return model.eval()


def scores_after(model: LanguageModel, ids: list[int]) -> torch.Tensor:
    """Scores of the token after `ids`, by one pass of a node."""
    node = build_node(model, pages=8, page_size=16)
    generation = Generation(
        "r",
        GenerationRequest("r", "", 1),
        ids,
        len(ids),
        len(ids) + 1,
        frozenset(),
        GrowingText(lambda ids: ""),
    )
    node.open(generation, generation.stored_at_end)
    rows = (Row(generation, 0, len(ids), samples=True),)
    step = node.declare(rows)
    assert node.runner.admit(step).ok
    node.runner.plan(step)
    with torch.inference_mode():
        return node.forward(step, rows)[0]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kernels", ["torch", "native"])
def test_scores_equal_the_reference(write_toy: Callable[..., Path], tied: bool, kernels: Kernels) -> None:
    """With and without an output matrix of its own, by torch or compiled: the same model."""
    path = write_toy(tied=tied, seed=3, head_width=16)
    ids = [5, 90, 17, 260, 33, 33, 8, 101, 44, 12, 200, 7, 61, 150, 9, 77, 18, 3, 250]
    with torch.no_grad():
        expected = reference(path)(torch.tensor([ids])).logits[0, -1]
    got = scores_after(load_llama(open_gguf(path), Build(kernels=kernels)), ids)
    torch.testing.assert_close(got, expected, atol=2e-4, rtol=2e-4)


def test_paired_halves_undoes_the_interleaving() -> None:
    """GGUF turns neighbours, this model turns halves: the rows must be sorted, head by head."""
    rows = torch.arange(8.0).view(8, 1)
    assert paired_halves(rows, heads=2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_a_missing_tensor_is_named_with_its_file(write_toy: Callable[..., Path]) -> None:
    """Found at load, not as a failed product in the first request."""
    path = write_toy(change={"blk.1.ffn_up.weight": None})
    with pytest.raises(ArtifactError, match=r"toy\.gguf.*blk\.1\.ffn_up\.weight.*\(48, 32\), got None"):
        Engine.load(str(path))


def test_a_tensor_that_does_not_fit_the_sizes_is_named(write_toy: Callable[..., Path]) -> None:
    """Weights of another model under the same name."""
    path = write_toy(change={"blk.0.attn_k.weight": torch.zeros(8, 32).numpy()})
    with pytest.raises(ArtifactError, match=r"attn_k.*\(16, 32\), got \(8, 32\)"):
        Engine.load(str(path))
