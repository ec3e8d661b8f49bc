"""The BERT family (Devlin et al. 2018) as an encoder of sentences: one vector for each text.

A batch is one flat row of tokens, so that no work goes into padding; attention, which must not look
across texts, runs over groups of texts of one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from treadle.engine.models.linear import Linear, make_linear
from treadle.engine.models.pooling import check_pooling, longest_text
from treadle.engine.weights import Checkpoint, Reading
from treadle.errors import ArtifactError

NAMES = ("BertModel",)
"""What Hugging Face folders call it."""

# Only what fills a masked word or compares two sentences needs these.
_SPARE = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")


@dataclass(frozen=True)
class BertConfig:
    """Sizes of a model; `width` is that of the hidden state and of the vectors, `context` in tokens."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    kinds: int
    context: int
    norm_epsilon: float


@dataclass(frozen=True)
class Norm:
    """Layer normalisation with a weight and a bias."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, state: Tensor) -> Tensor:
        """Rows of (tokens, width), each made even."""
        return layer_norm(state, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, as functions; q, k and v are one matrix."""

    qkv: Linear
    output: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    feed_forward_norm: Norm


class Bert:
    """A model whose weights come from `reading`, by their Hugging Face names.

    Raises:
        ArtifactError: there is no such tensor, or of another shape.
    """

    def __init__(self, config: BertConfig, reading: Reading, *, packed: bool = True) -> None:
        self.config = config
        sizes = {
            "word": config.vocabulary,
            "position": config.positions,
            "token_type": config.kinds,
        }
        words, positions, kinds = (
            reading.load(f"embeddings.{name}_embeddings.weight", (size, config.width))
            for name, size in sizes.items()
        )
        self._words = words
        self._places = positions + kinds[0]  # all of a text is of the first kind
        self._norm = _norm(config, reading, "embeddings.LayerNorm")
        self._layers = [_layer(config, reading, index, packed) for index in range(config.layers)]

    def encode(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Float32 (texts, width): for each text, token ids, the mean of its last hidden states.

        Texts of one length should stand together: they attend at once.
        """
        groups = [(length, len(list(alike))) for length, alike in groupby(texts, len)]
        tokens = torch.tensor([token for text in texts for token in text], dtype=torch.int64)
        places = torch.cat([torch.arange(length).repeat(count) for length, count in groups])
        state = self._norm(self._words[tokens] + self._places[places])
        for layer in self._layers:
            mixed = _attend(layer.qkv(state), groups, self.config.heads)
            state = layer.attention_norm(state + layer.output(mixed))
            state = layer.feed_forward_norm(state + layer.down(gelu(layer.up(state))))
        return torch.cat([part.mean(dim=1) for part in _by_group(state, groups)])


def _by_group(rows: Tensor, groups: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Rows (tokens, width) as one (texts, length, width) for each group."""
    parts = torch.split(rows, [length * count for length, count in groups])
    return [part.view(count, length, -1) for part, (length, count) in zip(parts, groups, strict=True)]


def _attend(qkv: Tensor, groups: Sequence[tuple[int, int]], heads: int) -> Tensor:
    """(tokens, 3 * width) -> (tokens, width): every token looks at all of its own text."""
    mixed = []
    for part in _by_group(qkv, groups):
        queries, keys, values = part.view(*part.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
        found = scaled_dot_product_attention(queries, keys, values)
        mixed.append(found.transpose(1, 2).flatten(2).flatten(0, 1))
    return torch.cat(mixed)


def _norm(config: BertConfig, reading: Reading, name: str) -> Norm:
    shape = (config.width,)
    return Norm(
        reading.load(f"{name}.weight", shape), reading.load(f"{name}.bias", shape), config.norm_epsilon
    )


def _layer(config: BertConfig, reading: Reading, index: int, packed: bool) -> Layer:
    place, width, hidden = f"encoder.layer.{index}", config.width, config.feed_forward

    def linear(outputs: int, columns: int, *names: str) -> Linear:
        weights = [reading.load(f"{place}.{name}.weight", (outputs, columns)) for name in names]
        biases = [reading.load(f"{place}.{name}.bias", (outputs,)) for name in names]
        return make_linear(torch.cat(weights), torch.cat(biases), packed=packed)

    return Layer(
        qkv=linear(width, width, *(f"attention.self.{name}" for name in ("query", "key", "value"))),
        output=linear(width, width, "attention.output.dense"),
        attention_norm=_norm(config, reading, f"{place}.attention.output.LayerNorm"),
        up=linear(hidden, width, "intermediate.dense"),
        down=linear(width, hidden, "output.dense"),
        feed_forward_norm=_norm(config, reading, f"{place}.output.LayerNorm"),
    )


def load_bert(checkpoint: Checkpoint, *, packed: bool = True) -> Bert:
    """The model of a checkpoint.

    Raises:
        ArtifactError: a config value or a tensor is missing, of another kind or shape, or asks for what is
            not known here; or there are tensors that no layer reads.
    """
    reading = Reading(checkpoint)
    model = Bert(read_config(checkpoint), reading, packed=packed)
    reading.check_all_taken("BERT", _SPARE)
    return model


def read_config(checkpoint: Checkpoint) -> BertConfig:
    """The sizes that a checkpoint states.

    Raises:
        ArtifactError: one is missing or of another kind, no model has these sizes, or see `load_bert`.
    """
    value = checkpoint.value
    for key, known in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
        if (found := value(key, str, known)) != known:
            raise ArtifactError(f"{checkpoint.path}: {key} {found!r} is not known here, known: {known!r}")
    check_pooling(checkpoint.path)
    positions = value("max_position_embeddings", int)
    config = BertConfig(
        layers=value("num_hidden_layers", int),
        width=value("hidden_size", int),
        heads=value("num_attention_heads", int),
        feed_forward=value("intermediate_size", int),
        vocabulary=value("vocab_size", int),
        positions=positions,
        kinds=value("type_vocab_size", int, 2),
        context=longest_text(checkpoint.path, positions),
        norm_epsilon=value("layer_norm_eps", float, 1e-12),
    )
    if min(config.layers, config.heads, config.kinds, config.context) < 1 or config.width % config.heads:
        raise ArtifactError(f"{checkpoint.path}: a BERT model needs whole heads and layers, got {config}")
    return config
