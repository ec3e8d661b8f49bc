"""Models of several families against transformers: the same folder, the same greedy tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.engine.folders import change_config, change_tensors, write_language_model
from treadle.engine.engine import Engine
from treadle.engine.models.llama_family import read_config
from treadle.engine.requests import GenerationRequest
from treadle.engine.weights import open_checkpoint
from treadle.engine.weights.gguf_names import stored_name
from treadle.errors import ArtifactError

NEW = 24
PROMPTS = ("the", "In the thin inn, the theme", "x" * 40, "naïve 北!")
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def generated(folder: Path) -> dict[str, tuple[int, ...]]:
    engine = Engine.load(str(folder), max_batch=4, token_budget=16, cache_tokens=320)
    asked = [GenerationRequest(prompt, prompt, NEW, ignore_eos=True) for prompt in PROMPTS]
    return {each.id: each.token_ids for each in engine.generate(asked)}


def reference(folder: Path) -> dict[str, tuple[int, ...]]:
    """One by one, so that nothing is padded."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    model: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    model.eval()
    model.generation_config.eos_token_id = None
    found = {}
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer(prompt).input_ids])
        with torch.no_grad():
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False, pad_token_id=0
            )
        found[prompt] = tuple(out[0, ids.shape[1] :].tolist())
    return found


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("Llama", {}),
        ("Llama", {"tie_word_embeddings": True, "head_dim": 12, "attention_bias": True}),
        ("Llama", {"rope_parameters": LLAMA3}),
        ("Qwen2", {}),
        ("Qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 1}),
        ("Mistral", {"sliding_window": None, "head_dim": 12}),
        ("Mistral", {"sliding_window": 96}),
    ],
)
def test_greedy_tokens_equal_the_reference(tmp_path: Path, family: str, changes: dict[str, Any]) -> None:
    """With biases and without, heads of any width, tied and untied, rotation scaled and not."""
    folder = write_language_model(tmp_path / "toy", family, **changes)
    expected = reference(folder)
    assert (
        len({token for tokens in expected.values() for token in tokens}) > NEW
    )  # no model that repeats itself
    assert generated(folder) == expected


def test_older_configs_say_the_rotation_elsewhere(tmp_path: Path) -> None:
    """`rope_theta` and `rope_scaling` stood apart before `rope_parameters`, and `rope_type` was `type`."""
    folder = write_language_model(tmp_path / "toy", rope_parameters=LLAMA3)
    expected = read_config(open_checkpoint(folder))
    scaling = {"type": "llama3", **LLAMA3}
    del scaling["rope_type"], scaling["rope_theta"]
    change_config(folder, rope_parameters=None, rope_theta=500, rope_scaling=scaling)
    assert read_config(open_checkpoint(folder)) == expected
    assert len(set(expected.rope_factors)) > 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sliding_window": 32}, r"sliding windows are not known here \(sliding_window 32"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding windows .*sliding_attention"),
        (
            {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0}},
            "scaled rotation 'yarn' is not known",
        ),
        ({"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": None}, "'linear' is not known"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "rope: factor should be float, got NoneType"),
        ({"rope_parameters": LLAMA3 | {"factor": 0}}, "makes no sense"),
        ({"rope_parameters": LLAMA3 | {"low_freq_factor": 9}}, "makes no sense"),
        ({"rope_parameters": LLAMA3, "head_dim": 2**40}, "head of 1099511627776 numbers is wider than"),
        ({"rope_parameters": LLAMA3 | {"rope_theta": 0}}, "rope_theta should be above 0, got 0"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not known here, known: 'silu'"),
        ({"mlp_bias": True}, "mlp_bias True is not known here"),
        ({"num_local_experts": 8}, "num_local_experts 8 is not known here"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5 is not known here"),
    ],
)
def test_what_is_not_known_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    """Ignored, it would be a model that is right for short texts and wrong for long ones."""
    folder = change_config(write_language_model(tmp_path / "toy"), **changes)
    with pytest.raises(ArtifactError, match=said):
        Engine.load(str(folder))


def test_windows_that_are_switched_off_are_no_windows(tmp_path: Path) -> None:
    """Qwen2 states a window and says in another key that nobody looks through it."""
    folder = write_language_model(tmp_path / "toy", "Qwen2")
    change_config(folder, sliding_window=32, use_sliding_window=False)
    assert read_config(open_checkpoint(folder)).qkv_bias
    change_config(folder, use_sliding_window=True)
    with pytest.raises(ArtifactError, match="sliding windows"):
        Engine.load(str(folder))


def test_what_older_converters_kept_is_no_part_too_many(tmp_path: Path) -> None:
    """The frequencies of the rotation, and a copy of the embedding where that is the output too."""
    folder = write_language_model(tmp_path / "toy", tie_word_embeddings=True)
    expected = generated(folder)
    frequencies = {"model__layers__0__self_attn__rotary_emb__inv_freq": torch.ones(4)}
    change_tensors(folder, lm_head__weight=torch.ones(266, 32), **frequencies)
    assert generated(folder) == expected


def test_an_unknown_scaling_in_a_gguf_file_is_refused(write_toy: Callable[..., Path]) -> None:
    """It has a key of its own there."""
    with pytest.raises(ArtifactError, match="scaled rotation 'yarn' is not known here, known: llama3"):
        Engine.load(str(write_toy(rope_scaling="yarn")))
    assert Engine.load(str(write_toy(rope_scaling="none")), cache_tokens=64).tokenizer.size == 263


def test_factors_in_a_gguf_file_scale_the_rotation(write_toy: Callable[..., Path]) -> None:
    """Its converter works the factors out and keeps them as a tensor."""
    factors = np.array([1, 1, 2.5, 8], np.float32)
    path = write_toy(change={"rope_freqs.weight": factors})
    assert read_config(open_checkpoint(path)).rope_factors == (1, 1, 2.5, 8)
    assert generated(path) != generated(write_toy())
    with pytest.raises(ArtifactError, match=r"rope_freqs\.weight' should have shape \(4,\), got \(3,\)"):
        Engine.load(str(write_toy(change={"rope_freqs.weight": factors[:3]})))


def test_a_gguf_file_of_qwen2_generates_what_its_folder_does(
    tmp_path: Path, write_toy: Callable[..., Path]
) -> None:
    """Unlike those of Llama, its rows are not interleaved; and it has biases."""
    rotation = {"rope_type": "default", "rope_theta": 100.0}
    folder = write_language_model(tmp_path / "toy", "Qwen2", vocab_size=263, rope_parameters=rotation)
    weights = load_file(folder / "model.safetensors")
    renamed: Any = {stored_name(name): tensor.numpy() for name, tensor in weights.items()}
    path = write_toy(architecture="qwen2", pre="qwen2", change=renamed)
    asked = GenerationRequest("ids", (5, 90, 17, 260, 33), NEW, ignore_eos=True)
    ours, theirs = (
        next(iter(Engine.load(str(place), cache_tokens=64).generate([asked]))) for place in (path, folder)
    )
    assert ours.token_ids == theirs.token_ids
    assert len(set(ours.token_ids)) > 3
