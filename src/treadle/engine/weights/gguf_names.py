"""What GGUF calls the config values and tensors that Hugging Face calls otherwise."""

from __future__ import annotations

import re

CONFIG_KEYS = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rope_theta": "rope.freq_base",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "sliding_window": "attention.sliding_window",
    "num_local_experts": "expert_count",
}
"""Keys of `config.json` to those of GGUF, before which the architecture stands: `llama.block_count`."""

_WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_IN_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")


def stored_name(name: str) -> str:
    """The GGUF name of a tensor: `model.layers.0.mlp.up_proj.weight` is `blk.0.ffn_up.weight`.

    A name that has no other in GGUF is its own.
    """
    module, dot, part = name.rpartition(".")
    if found := _LAYER.fullmatch(module):
        layer, within = found.groups()
        return f"blk.{layer}.{_IN_LAYER.get(within, within)}{dot}{part}"
    return f"{_WHOLE.get(module, module)}{dot}{part}"


def spoken_name(stored: str) -> str:
    """The Hugging Face name of a GGUF tensor; what has no other name keeps its own."""
    module, dot, part = stored.rpartition(".")
    if (found := re.fullmatch(r"blk\.(\d+)\.(.+)", module)) and found[2] in _IN_LAYER_BACK:
        return f"model.layers.{found[1]}.{_IN_LAYER_BACK[found[2]]}{dot}{part}"
    return f"{_WHOLE_BACK.get(module, module)}{dot}{part}"


_WHOLE_BACK = {there: here for here, there in _WHOLE.items()}
_IN_LAYER_BACK = {there: here for here, there in _IN_LAYER.items()}
