"""The Llama family (Touvron et al. 2023): Llama, SmolLM2 and whatever shares their layers.

A batch is one flat row of tokens from many requests. The model knows nothing of requests, pages or
positions: it is handed the rotation of each token and a function that attends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from treadle.engine.models.linear import Linear, make_linear
from treadle.engine.weights import Checkpoint
from treadle.errors import ArgumentError, ArtifactError

Rotate = Callable[[Tensor], Tensor]
# (layer, queries, keys, values), each (tokens, heads, width) -> (tokens, query heads, width)
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
# (name, shape) -> float32 of that shape
Load = Callable[[str, tuple[int, ...]], Tensor]


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a model; `width` is that of the hidden state, `head_width` that of one head."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    context: int
    rope_base: float
    norm_epsilon: float
    tied: bool

    def __post_init__(self) -> None:
        if min(self.layers, self.heads, self.kv_heads) < 1 or self.heads % self.kv_heads:
            raise ArgumentError(f"a Llama model needs heads in whole groups per key head, got {self}")
        if self.head_width < 1 or self.head_width % 2:
            raise ArgumentError(f"rotation turns pairs of numbers: a head's width must be even, got {self}")


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, as functions; q, k, v and gate, up are one matrix each."""

    attention_norm: Tensor
    qkv: Linear
    output: Linear
    feed_forward_norm: Tensor
    gate_up: Linear
    down: Linear


class Llama:
    """A model whose weights come from `load`, by their GGUF names.

    Args:
        config: its sizes.
        load: the tensor of a name, which must have the shape asked for.
        packed: see `linear`.

    Raises:
        ArtifactError: `load` has no such tensor, or of another shape.
    """

    def __init__(self, config: LlamaConfig, load: Load, *, packed: bool = True) -> None:
        self.config = config
        embedding = load("token_embd.weight", (config.vocabulary, config.width))
        head = embedding if config.tied else load("output.weight", (config.vocabulary, config.width))
        self._embedding = embedding
        self._layers = [_layer(config, index, load, packed) for index in range(config.layers)]
        self._norm = load("output_norm.weight", (config.width,))
        self._head = make_linear(head, packed=packed)

    def hidden(self, tokens: Tensor, rotate: Rotate, attend: Attend) -> Tensor:
        """The last hidden state, float32 (tokens, width), of int64 (tokens,)."""
        state = self._embedding[tokens]
        for index, layer in enumerate(self._layers):
            normed = self._normed(state, layer.attention_norm)
            state = state + self._attention(index, layer, normed, rotate, attend)
            state = state + _feed_forward(layer, self._normed(state, layer.feed_forward_norm))
        return state

    def scores(self, hidden: Tensor) -> Tensor:
        """Float32 (rows, vocabulary): the score of each next token after hidden states (rows, width)."""
        return self._head(self._normed(hidden, self._norm))

    def _attention(self, index: int, layer: Layer, state: Tensor, rotate: Rotate, attend: Attend) -> Tensor:
        config = self.config
        heads = layer.qkv(state).view(len(state), -1, config.head_width)
        turning = config.heads + config.kv_heads
        turned = rotate(heads[:, :turning])
        mixed = attend(index, turned[:, : config.heads], turned[:, config.heads :], heads[:, turning:])
        return layer.output(mixed.flatten(1))

    def _normed(self, state: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(state, weight.shape, weight, self.config.norm_epsilon)


def _feed_forward(layer: Layer, state: Tensor) -> Tensor:
    gate, up = layer.gate_up(state).chunk(2, dim=-1)
    return layer.down(silu(gate).mul_(up))


def _layer(config: LlamaConfig, index: int, load: Load, packed: bool) -> Layer:
    def weight(name: str, *shape: int) -> Tensor:
        return load(f"blk.{index}.{name}.weight", shape)

    width, hidden = config.width, config.feed_forward
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    q = paired_halves(weight("attn_q", queries, width), config.heads)
    k = paired_halves(weight("attn_k", keys, width), config.kv_heads)
    gate_up = torch.cat((weight("ffn_gate", hidden, width), weight("ffn_up", hidden, width)))
    return Layer(
        attention_norm=weight("attn_norm", width),
        qkv=make_linear(torch.cat((q, k, weight("attn_v", keys, width))), packed=packed),
        output=make_linear(weight("attn_output", width, queries), packed=packed),
        feed_forward_norm=weight("ffn_norm", width),
        gate_up=make_linear(gate_up, packed=packed),
        down=make_linear(weight("ffn_down", width, hidden), packed=packed),
    )


def paired_halves(weight: Tensor, heads: int) -> Tensor:
    """Rows of a GGUF query or key weight in the order that `Rotation.turn` expects.

    GGUF rotates neighbours, so its converter interleaves the two halves of each head; this undoes it.
    """
    outputs, width = weight.shape
    pairs = weight.view(heads, outputs // heads // 2, 2, width)
    return pairs.transpose(1, 2).reshape(outputs, width)


def load_llama(checkpoint: Checkpoint, *, packed: bool = True) -> Llama:
    """The model in a GGUF file of architecture `llama`.

    Raises:
        ArtifactError: metadata or a tensor is missing, of another shape, or asks for scaled rotation,
            or there are tensors that no layer reads.
    """
    read: set[str] = set()

    def load(name: str, shape: tuple[int, ...]) -> Tensor:
        read.add(name)
        return checkpoint.tensor(name, shape)

    model = Llama(read_config(checkpoint), load, packed=packed)
    # Biases, adapters or layers left out would give another model's text without any error.
    if unread := sorted(set(checkpoint.tensors) - read):
        raise ArtifactError(
            f"{checkpoint.path}: {len(unread)} tensors belong to no part of a Llama model as known here, "
            f"the first is {unread[0]!r}: the file is damaged, or of a model with more parts"
        )
    return model


def read_config(checkpoint: Checkpoint) -> LlamaConfig:
    """The sizes that a GGUF file of architecture `llama` states.

    Raises:
        ArtifactError: one is missing or of another kind, or no model has these sizes.
    """
    try:
        return _config(checkpoint)
    except ArgumentError as error:
        raise ArtifactError(f"{checkpoint.path}: {error}") from error


def _config(checkpoint: Checkpoint) -> LlamaConfig:
    def number(key: str, default: int | None = None) -> int:
        name = f"llama.{key}"
        return checkpoint.value(name, int) if default is None else checkpoint.value(name, int, default)

    scaling = checkpoint.value("llama.rope.scaling.type", str, "none")
    if scaling != "none" or "rope_freqs.weight" in checkpoint.tensors:
        raise ArtifactError(f"{checkpoint.path}: scaled rotation ({scaling}) is not known here")
    width, heads = number("embedding_length"), number("attention.head_count")
    return LlamaConfig(
        layers=number("block_count"),
        width=width,
        heads=heads,
        kv_heads=number("attention.head_count_kv", heads),
        head_width=number("rope.dimension_count", width // max(heads, 1)),
        feed_forward=number("feed_forward_length"),
        vocabulary=len(checkpoint.value("tokenizer.ggml.tokens", list)),
        context=number("context_length"),
        rope_base=checkpoint.value("llama.rope.freq_base", float, 10000.0),
        norm_epsilon=checkpoint.value("llama.attention.layer_norm_rms_epsilon", float),
        tied="output.weight" not in checkpoint.tensors,
    )
