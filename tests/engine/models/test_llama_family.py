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
        ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}}),
        ("Llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 4.0}}),
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
        ({"sliding_window": -1}, "a model needs room for a token, got a context of -1, window -1"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "context of 0, window 0"),
        (
            {"layer_types": ["full_attention", "chunked_attention"]},
            r"layers of \['chunked_attention'\] are not",
        ),
        ({"max_position_embeddings": 0}, "a model needs room for a token, got a context of 0"),
        (
            {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0}},
            "scaled rotation 'yarn' is not known",
        ),
        ({"rope_scaling": {"type": "longrope"}, "rope_parameters": None}, "'longrope' is not known"),
        (
            {"rope_scaling": {"type": "linear"}, "rope_parameters": None},
            "rope: factor should be float, got None",
        ),
        ({"rope_parameters": {"rope_type": "linear", "factor": 0}}, "rope: factor should be above 0, got 0"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor 0.5 is not known here"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "rope: factor should be float, got NoneType"),
        ({"rope_parameters": LLAMA3 | {"factor": 0}}, "rope: factor should be above 0, got 0"),
        ({"rope_parameters": LLAMA3 | {"low_freq_factor": 9}}, "9.0 should be below high_freq_factor 4.0"),
        ({"rope_parameters": {"rope_type": [[]]}}, "rope: rope_type should be str, got list"),
        ({"layer_types": [[]]}, "layer_types should be str, got list"),
        ({"rope_parameters": LLAMA3, "head_dim": 2**40}, "head of 1099511627776 numbers is wider than"),
        (
            {"rope_parameters": LLAMA3, "head_dim": 2**40, "hidden_size": 2**40},
            "is wider than .* or than 1024",
        ),
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
    assert read_config(open_checkpoint(folder)).context == 96
    change_config(folder, use_sliding_window=True, layer_types=None)
    assert read_config(open_checkpoint(folder)).context == 32


def test_a_text_is_no_longer_than_the_window(tmp_path: Path) -> None:
    """Up to there a layer sees everything, and the tokens are those of the reference."""
    folder = write_language_model(tmp_path / "toy", "Mistral", sliding_window=72)
    assert generated(folder) == reference(folder)
    engine = Engine.load(str(folder), cache_tokens=128)
    whole, longer = (GenerationRequest(str(size), (5,) * size, 1) for size in (71, 72))
    done = {each.id: each for each in engine.generate([whole, longer])}
    assert done["71"].finish_reason == "length"
    assert done["72"].finish_reason == "error"


def test_what_older_converters_kept_is_no_part_too_many(tmp_path: Path) -> None:
    """The frequencies of the rotation, and a copy of the embedding where that is the output too."""
    folder = write_language_model(tmp_path / "toy", tie_word_embeddings=True)
    expected = generated(folder)
    frequencies = {"model__layers__0__self_attn__rotary_emb__inv_freq": torch.ones(4)}
    change_tensors(folder, lm_head__weight=torch.ones(266, 32), **frequencies)
    assert generated(folder) == expected


def test_an_unknown_scaling_in_a_gguf_file_is_refused(write_toy: Callable[..., Path]) -> None:
    """It has a key of its own there."""
    with pytest.raises(
        ArtifactError, match=r"scaled rotation 'yarn' is not known here, known: .*linear, llama3"
    ):
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


def test_a_gguf_file_says_the_scaling_in_its_own_words(write_toy: Callable[..., Path]) -> None:
    """By a kind and a factor, or, in older files, by a factor alone."""
    new = write_toy(rope_scaling="linear", said={"llama.rope.scaling.factor": 4.0})
    old = write_toy(said={"llama.rope.scale_linear": 4.0})
    factors = [read_config(open_checkpoint(path)).rope_factors for path in (new, old, write_toy())]
    assert factors == [(4.0,) * 4, (4.0,) * 4, ()]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"llama.attention.key_length": 8, "llama.attention.value_length": 8}, 8),
        (
            {"llama.attention.key_length": 16, "llama.attention.value_length": 16},
            "partial_rotary_factor 0.5 is not known here",
        ),
        (
            {"llama.attention.key_length": 8, "llama.attention.value_length": 4},
            "keys have 8 numbers, of values 4",
        ),
    ],
)
def test_a_gguf_file_states_the_width_of_heads(
    write_toy: Callable[..., Path], said: dict[str, int], expected: int | str
) -> None:
    """Mistral Nemo's are narrower than its state has room for; a part that is not turned is another model."""
    path = write_toy(said=said)
    if isinstance(expected, int):
        assert read_config(open_checkpoint(path)).head_width == expected
        return
    with pytest.raises(ArtifactError, match=expected):
        Engine.load(str(path))
