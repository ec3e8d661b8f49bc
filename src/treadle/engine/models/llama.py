"""The Llama family (Touvron et al. 2023): Llama, SmolLM2 and whatever shares their layers.

A batch is one flat row of tokens from many requests. The model knows nothing of requests, pages or
positions: it is handed the rotation of each token and a function that attends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from treadle.engine.models.build import Precision, stored_type
from treadle.engine.models.linear import Linear, make_linear
from treadle.errors import ArgumentError

Rotate = Callable[[Tensor], Tensor]
# (layer, queries, keys, values), each (tokens, heads, width) -> (tokens, query heads, width)
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
# (name, shape) -> float32 of that shape
Load = Callable[[str, tuple[int, ...]], Tensor]


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a model; `width` is that of the hidden state, `head_width` that of one head.

    `qkv_bias` and `output_bias` say where attention adds biases; `rope_factors` are what the frequencies
    of the rotation are divided by, one for each pair of numbers, or none.
    """

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
    qkv_bias: bool = False
    output_bias: bool = False
    rope_factors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if min(self.layers, self.heads, self.kv_heads) < 1 or self.heads % self.kv_heads:
            raise ArgumentError(f"a Llama model needs heads in whole groups per key head, got {self}")
        if self.head_width < 1 or self.head_width % 2:
            raise ArgumentError(f"rotation turns pairs of numbers: a head's width must be even, got {self}")


@dataclass(frozen=True)
class LayerWeights:
    """What a checkpoint holds of one layer; q, k, v are one matrix, and so are their biases, if any."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    output: Tensor
    output_bias: Tensor | None
    feed_forward_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, as functions; gate and up are one matrix too."""

    attention_norm: Tensor
    qkv: Linear
    output: Linear
    feed_forward_norm: Tensor
    gate_up: Linear
    down: Linear


class Llama:
    """A model whose weights come from `load`, by their Hugging Face names.

    Args:
        config: its sizes.
        load: the tensor of a name, which must have the shape asked for.
        precision: see `linear`; the hidden state is float32 in each.
        packed: see `linear`.

    Raises:
        ArtifactError: `load` has no such tensor, or of another shape.
    """

    def __init__(
        self, config: LlamaConfig, load: Load, *, precision: Precision = "float32", packed: bool = True
    ) -> None:
        self.config = config
        self.precision = precision
        embedding, head = read_ends(config, load)
        make = partial(make_linear, precision=precision, packed=packed)
        self._embedding = embedding.to(stored_type(precision))
        self._layers = [_layer(read_layer(config, index, load), make) for index in range(config.layers)]
        self._norm = load("model.norm.weight", (config.width,))
        self._head = make(head)

    def hidden(self, tokens: Tensor, rotate: Rotate, attend: Attend) -> Tensor:
        """The last hidden state, float32 (tokens, width), of int64 (tokens,)."""
        state = self._embedding[tokens].float()
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
        turning = config.heads + config.kv_heads
        heads = layer.qkv(state).view(len(state), turning + config.kv_heads, config.head_width)
        turned = rotate(heads[:, :turning])
        mixed = attend(index, turned[:, : config.heads], turned[:, config.heads :], heads[:, turning:])
        return layer.output(mixed.flatten(1))

    def _normed(self, state: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(state, weight.shape, weight, self.config.norm_epsilon)


def _feed_forward(layer: Layer, state: Tensor) -> Tensor:
    gate, up = layer.gate_up(state).chunk(2, dim=-1)
    return layer.down(silu(gate).mul_(up))


def _layer(weights: LayerWeights, make: Callable[..., Linear]) -> Layer:
    return Layer(
        attention_norm=weights.attention_norm,
        qkv=make(weights.qkv, weights.qkv_bias),
        output=make(weights.output, weights.output_bias),
        feed_forward_norm=weights.feed_forward_norm,
        gate_up=make(torch.cat((weights.gate, weights.up))),
        down=make(weights.down),
    )


def read_ends(config: LlamaConfig, load: Load) -> tuple[Tensor, Tensor]:
    """The embedding and the output matrix, (vocabulary, width) each; one and the same where they are tied."""
    embedding = load("model.embed_tokens.weight", (config.vocabulary, config.width))
    return embedding, embedding if config.tied else load("lm_head.weight", (config.vocabulary, config.width))


def read_layer(config: LlamaConfig, index: int, load: Load) -> LayerWeights:
    """The weights of one layer, by their Hugging Face names.

    Raises:
        ArtifactError: `load` has no such tensor, or of another shape.
    """

    def weight(name: str, *shape: int) -> Tensor:
        return load(f"model.layers.{index}.{name}.weight", shape)

    def bias(wanted: bool, *parts: tuple[str, int]) -> Tensor | None:
        found = [load(f"model.layers.{index}.{name}.bias", (size,)) for name, size in parts if wanted]
        return torch.cat(found) if found else None

    width, hidden = config.width, config.feed_forward
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    heads = (("self_attn.q_proj", queries), ("self_attn.k_proj", keys), ("self_attn.v_proj", keys))
    return LayerWeights(
        attention_norm=weight("input_layernorm", width),
        qkv=torch.cat([weight(name, size, width) for name, size in heads]),
        qkv_bias=bias(config.qkv_bias, *heads),
        output=weight("self_attn.o_proj", width, queries),
        output_bias=bias(config.output_bias, ("self_attn.o_proj", width)),
        feed_forward_norm=weight("post_attention_layernorm", width),
        gate=weight("mlp.gate_proj", hidden, width),
        up=weight("mlp.up_proj", hidden, width),
        down=weight("mlp.down_proj", width, hidden),
    )
