"""Families that the engine does not know, added as anyone would: each by what stands in one file.

The layers of Phi-3 are those of Llama, with q, k and v in one matrix, and so gate and up. Those of Qwen3
compute something more.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.engine.folders import write_language_model
from treadle.engine.engine import Engine
from treadle.engine.models.architectures import language_models
from treadle.engine.models.build import Build, Kernels, Precision
from treadle.engine.models.llama import Attend, Layer, Llama, LlamaConfig, Load, Rotate
from treadle.engine.models.llama_family import load_llama, read_config
from treadle.engine.models.native_llama import NativeLlama
from treadle.engine.requests import GenerationRequest
from treadle.engine.weights import Checkpoint, Reading, Vocabulary
from treadle.errors import ArtifactError, UnknownNameError

IDS = (5, 90, 17, 260, 33, 8, 8, 121)
PARTS = {
    "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
}


class Split:
    """A checkpoint of Phi-3 in the words of Llama; see `Checkpoint`."""

    def __init__(self, inner: Checkpoint) -> None:
        self._inner = inner
        self.path, self.architecture, self.value = inner.path, inner.architecture, inner.value

    @property
    def names(self) -> Collection[str]:
        return {each for name in self._inner.names for each in spoken(name)}

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        for whole, parts in PARTS.items():
            for at, part in enumerate(parts):
                if f".{part}." in name:
                    rows = self._rows(whole)
                    fused = self._inner.tensor(name.replace(part, whole), (sum(rows), *shape[1:]))
                    found: Tensor = torch.split(fused, rows)[at]
                    return found
        return self._inner.tensor(name, shape)

    def vocabulary(self) -> Vocabulary:
        return self._inner.vocabulary()

    def _rows(self, whole: str) -> list[int]:
        if whole == "mlp.gate_up_proj":
            return [self.value("intermediate_size", int)] * 2
        heads, keys = self.value("num_attention_heads", int), self.value("num_key_value_heads", int)
        width = self.value("hidden_size", int) // heads
        return [heads * width, keys * width, keys * width]


def spoken(name: str) -> Iterator[str]:
    """The names in Llama's words of what stands under one of Phi-3's."""
    fused = next((whole for whole in PARTS if f".{whole}." in name), None)
    yield from [name.replace(fused, part) for part in PARTS[fused]] if fused else [name]


def load_phi3(checkpoint: Checkpoint, build: Build) -> Llama | NativeLlama:
    return load_llama(Split(checkpoint), build)


class Qwen3(Llama):
    """Llama with a norm for each query and each key."""

    def __init__(self, config: LlamaConfig, load: Load, *, precision: Precision) -> None:
        super().__init__(config, load, precision=precision)
        names = [f"model.layers.{layer}.self_attn" for layer in range(config.layers)]
        self._head_norms = [
            [load(f"{name}.{each}_norm.weight", (config.head_width,)) for each in "qk"] for name in names
        ]

    def _attention(self, index: int, layer: Layer, state: Tensor, rotate: Rotate, attend: Attend) -> Tensor:
        config, (of_queries, of_keys) = self.config, self._head_norms[index]
        parts = [config.heads, config.kv_heads, config.kv_heads]
        heads = layer.qkv(state).view(len(state), sum(parts), config.head_width)
        queries, keys, values = torch.split(heads, parts, dim=1)
        queries = rotate(self._normed(queries, of_queries))
        keys = rotate(self._normed(keys, of_keys))
        return layer.output(attend(index, queries, keys, values).flatten(1))


def load_qwen3(checkpoint: Checkpoint, build: Build) -> Llama:
    reading = Reading(checkpoint)
    model = Qwen3(read_config(checkpoint), reading.load, precision=build.precision)
    reading.check_all_taken("Qwen3")
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other") / "toy"
    return write_language_model(folder, "Phi3", pad_token_id=0, sliding_window=None)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after two calls of `language_models.register`, for one test."""
    monkeypatch.setattr(language_models, "_things", {**language_models._things})
    language_models.register("Phi3ForCausalLM", load_phi3)
    language_models.register("Qwen3ForCausalLM", load_qwen3)


def reference(folder: Path) -> list[int]:
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    model.generation_config.eos_token_id = None
    prompt = torch.tensor([IDS])
    asked = {"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0}
    with torch.no_grad():
        out = model.eval().generate(prompt, attention_mask=torch.ones_like(prompt), **asked)
    found: list[int] = out[0, len(IDS) :].tolist()
    return found


def generated(folder: Path, kernels: Kernels) -> list[int]:
    engine = Engine.load(str(folder), kernels=kernels, cache_tokens=128)
    (done,) = engine.generate([GenerationRequest("ids", IDS, 24, ignore_eos=True)])
    return list(done.token_ids)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("kernels", ["torch", "auto"])
def test_other_names_give_the_tokens_of_the_reference(folder: Path, kernels: Kernels) -> None:
    """All else comes with it: the cache, batches, compiled kernels."""
    expected = reference(folder)
    assert generated(folder, kernels) == expected
    assert len(set(expected)) > 3


@pytest.mark.usefixtures("known")
def test_other_layers_give_the_tokens_of_the_reference(tmp_path: Path) -> None:
    """They run by torch, over the same cache."""
    other = write_language_model(tmp_path / "toy", "Qwen3", head_dim=8)
    expected = reference(other)
    assert generated(other, "auto") == expected
    assert len(set(expected)) > 3


def test_it_is_unknown_before(folder: Path) -> None:
    """And a loader of another family would not take it: it has parts that are not Llama's."""
    with pytest.raises(UnknownNameError, match=r"architecture 'Phi3ForCausalLM'.*known: .*LlamaForCausalLM"):
        Engine.load(str(folder))


def test_the_parts_of_another_family_are_not_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a name of Llama's the same weights lack what a Llama needs."""
    monkeypatch.setattr(language_models, "_things", {"Phi3ForCausalLM": load_llama})
    with pytest.raises(ArtifactError, match=r"q_proj\.weight' should have shape \(32, 32\), got None"):
        Engine.load(str(folder))
