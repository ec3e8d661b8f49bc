"""Which checkpoints are Llama models: Llama, SmolLM2, Qwen2 and Mistral.

Where layers look back through a window, texts may be as long as that: up to there they see everything.
What a config asks for and this engine lacks is refused by name: ignoring it would give a model that writes
other text without any error.
"""

from __future__ import annotations

from treadle.engine.models.build import Build
from treadle.engine.models.building import build_llama
from treadle.engine.models.llama import Llama, LlamaConfig
from treadle.engine.models.native_llama import NativeLlama
from treadle.engine.models.rope import FACTORS, read_rope
from treadle.engine.weights import Checkpoint, Reading
from treadle.engine.weights.checkpoint import checked
from treadle.errors import ArgumentError, ArtifactError

NAMES = ("llama", "qwen2", "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
"""What GGUF files and Hugging Face folders call them."""

# These add biases before attention, and none behind it, without saying so.
_BIASED_BEFORE = ("qwen2", "Qwen2ForCausalLM")
_AS_IT_COMES = Build()


def load_llama(checkpoint: Checkpoint, build: Build = _AS_IT_COMES) -> Llama | NativeLlama:
    """The model of a checkpoint.

    Raises:
        ArtifactError: a config value or a tensor is missing, of another kind or shape, or asks for what is
            not known here; or there are tensors that no layer reads.
        EngineError: `native` kernels were asked for, and cannot be had.
    """
    config = read_config(checkpoint)
    reading = Reading(checkpoint)
    model = build_llama(config, reading.load, build)
    # Older converters kept what can be computed, and a copy of the embedding where that is the output too.
    spare = [f"model.layers.{layer}.self_attn.rotary_emb.inv_freq" for layer in range(config.layers)]
    reading.check_all_taken("Llama", [*spare, FACTORS, *(["lm_head.weight"] if config.tied else [])])
    return model


def read_config(checkpoint: Checkpoint) -> LlamaConfig:
    """The sizes that a checkpoint states.

    Raises:
        ArtifactError: one is missing or of another kind, no model has these sizes, or see `load_llama`.
    """
    _check_known(checkpoint)
    try:
        return _config(checkpoint)
    except ArgumentError as error:
        raise ArtifactError(f"{checkpoint.path}: {error}") from error


def _config(checkpoint: Checkpoint) -> LlamaConfig:
    value = checkpoint.value
    width, heads = value("hidden_size", int), value("num_attention_heads", int)
    head_width = value("head_dim", int, width // max(heads, 1))
    if head_width > min(width, _WIDEST_HEAD):
        raise ArgumentError(
            f"a head of {head_width} numbers is wider than the whole state of {width}, or than {_WIDEST_HEAD}"
        )
    biased, only_before = value("attention_bias", bool, False), checkpoint.architecture in _BIASED_BEFORE
    rope = read_rope(checkpoint, head_width)
    return LlamaConfig(
        layers=value("num_hidden_layers", int),
        width=width,
        heads=heads,
        kv_heads=value("num_key_value_heads", int, heads),
        head_width=head_width,
        feed_forward=value("intermediate_size", int),
        vocabulary=value("vocab_size", int),
        context=_context(checkpoint),
        rope_base=rope.base,
        norm_epsilon=value("rms_norm_eps", float),
        tied=value("tie_word_embeddings", bool, False),
        qkv_bias=biased or only_before,
        output_bias=biased and not only_before,
        rope_factors=rope.factors,
    )


def _check_known(checkpoint: Checkpoint) -> None:
    """Refuse a config that asks for something which no part of `Llama` does."""
    for key, kind, known in _ONLY_KNOWN:
        if (found := checkpoint.value(key, kind, known)) != known:
            raise ArtifactError(f"{checkpoint.path}: {key} {found!r} is not known here, known: {known!r}")
    kinds = [
        checked(f"{checkpoint.path}: layer_types", each, str)
        for each in checkpoint.value("layer_types", list, [])
    ]
    if others := sorted(set(kinds) - {_FULL, _SLIDING}):
        raise ArtifactError(
            f"{checkpoint.path}: layers of {others} are not known here, known: {_FULL}, {_SLIDING}"
        )


def _context(checkpoint: Checkpoint) -> int:
    """In tokens; no longer than the window that layers look back through, if any does."""
    context, window = (
        checkpoint.value("max_position_embeddings", int),
        checkpoint.value("sliding_window", int, 0),
    )
    kinds = checkpoint.value("layer_types", list, [_SLIDING] if window else [])
    if checkpoint.value("use_sliding_window", bool, True) and _SLIDING in kinds:
        context = min(context, window)
    if context < 1:
        raise ArgumentError(f"a model needs room for a token, got a context of {context}, window {window}")
    return context


_FULL, _SLIDING = "full_attention", "sliding_attention"
# Four times the widest there is; what is worked out for each number of a head must end.
_WIDEST_HEAD = 1024
_ONLY_KNOWN: tuple[tuple[str, type, object], ...] = (
    ("hidden_act", str, "silu"),
    ("mlp_bias", bool, False),
    ("partial_rotary_factor", float, 1.0),
    ("num_local_experts", int, 0),
    ("pretraining_tp", int, 1),
)
