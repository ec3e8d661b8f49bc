"""The model of `llama`, in which a whole pass is one call of compiled code."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from treadle.engine.kernels.packing import LANES, Packed, beside, pack
from treadle.engine.kernels.structures import Batch, Cache, Layer, Model, Rows
from treadle.engine.models.build import Precision, stored_type
from treadle.engine.models.llama import LayerWeights, LlamaConfig, Load, read_ends, read_layer
from treadle.engine.resources.paged_attention import PagedRows
from treadle.errors import EngineError

PAGE_SIZE = LANES
"""Tokens of a page: one vector of scores."""

_KINDS: dict[Precision, int] = {"float32": 0, "bfloat16": 1, "int8": 2}
_MOST_WIDTH, _MOST_GROUP = 256, 48


@dataclass(frozen=True)
class NativeBatch:
    """A step as the compiled pass takes it.

    Attributes:
        tokens: int64 (tokens,).
        slots: int64 (tokens,), where their keys and values go.
        cos, sin: float32 (tokens, head width / 2), their rotation.
        rows: what each may look at.
        sampled: int64 (rows,), the tokens whose scores are wanted.
    """

    tokens: Tensor
    slots: Tensor
    cos: Tensor
    sin: Tensor
    rows: PagedRows
    sampled: Tensor


class NativeLlama:
    """A model whose weights come from `load`, packed for the compiled `library`.

    A row's scores do not depend on the rows beside it: each sum is made in one order, whatever the batch.

    Raises:
        ArtifactError: `load` has no such tensor, or of another shape.
        EngineError: sizes that the library cannot run; see `unfit`.
    """

    def __init__(
        self, config: LlamaConfig, load: Load, library: ctypes.CDLL, *, precision: Precision = "float32"
    ) -> None:
        if reason := unfit(config):
            raise EngineError(f"compiled kernels cannot run this model: {reason}")
        self.config = config
        self.precision = precision
        self._library = library
        self._kind = _KINDS[precision]
        self._layers = [_Layer(read_layer(config, index, load), precision) for index in range(config.layers)]
        embedding, head = read_ends(config, load)
        self._head = pack(head, precision)
        self._embedding = embedding.to(stored_type(precision)).contiguous()
        self._norm = load("model.norm.weight", (config.width,)).contiguous()
        self._layer_array = (Layer * config.layers)(*(layer.structure() for layer in self._layers))
        self._model = self._structure()
        self._room = torch.empty(0, dtype=torch.uint8)
        self._scores = torch.empty(0)

    def forward(self, batch: NativeBatch, store: Tensor) -> Tensor:
        """Float32 (sampled rows, vocabulary), valid until the next call; fills the slots of the cache.

        Args:
            batch: the step.
            store: the cache, (layers, 2, heads, pages, page size, width) in the precision of the model. The
                inside of a page is laid out by the library: pages may be moved, and read by nobody else.

        Raises:
            EngineError: a token that is not in the vocabulary.
        """
        _check_tokens(batch.tokens, self.config.vocabulary)
        count, wanted = len(batch.tokens), len(batch.sampled)
        self._make_room(count, wanted)
        scores = self._scores[: wanted * self.config.vocabulary].view(wanted, self.config.vocabulary)
        self._library.treadle_forward(
            self._kind,
            ctypes.byref(self._model),
            ctypes.byref(_batch(batch)),
            ctypes.byref(_cache(store)),
            scores.data_ptr(),
            self._room.data_ptr(),
            torch.get_num_threads(),
        )
        return scores

    def _make_room(self, tokens: int, wanted: int) -> None:
        room = self._library.treadle_room(ctypes.byref(self._model), tokens)
        if room > len(self._room):
            self._room = torch.empty(room, dtype=torch.uint8)
        if wanted * self.config.vocabulary > len(self._scores):
            self._scores = torch.empty(wanted * self.config.vocabulary)

    def _structure(self) -> Model:
        config = self.config
        return Model(
            layers=ctypes.addressof(self._layer_array),
            embedding=self._embedding.data_ptr(),
            norm=self._norm.data_ptr(),
            head=self._head.structure(),
            depth=config.layers,
            width=config.width,
            feed_forward=config.feed_forward,
            query_heads=config.heads,
            key_heads=config.kv_heads,
            head_width=config.head_width,
            epsilon=config.norm_epsilon,
        )


def unfit(config: LlamaConfig) -> str:
    """Why the library cannot run a model of these sizes; empty when it can."""
    for name in ("width", "head_width", "feed_forward"):
        if getattr(config, name) % LANES:
            return f"{name} {getattr(config, name)} is no multiple of {LANES}"
    if config.head_width > _MOST_WIDTH or config.heads // config.kv_heads > _MOST_GROUP:
        return f"heads are wider than {_MOST_WIDTH}, or more than {_MOST_GROUP} share a key head"
    return ""


def _check_tokens(tokens: Tensor, vocabulary: int) -> None:
    """Compiled code would read whatever lies there."""
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
        raise EngineError(f"tokens must be from 0 and below {vocabulary}, got {tokens.aminmax()}")


class _Layer:
    """One layer's packed weights, kept alive for the structure that points to them."""

    def __init__(self, weights: LayerWeights, precision: Precision) -> None:
        self._norms = weights.attention_norm.contiguous(), weights.feed_forward_norm.contiguous()
        self._packed: tuple[Packed, ...] = (
            pack(weights.qkv, precision, weights.qkv_bias),
            pack(weights.output, precision, weights.output_bias),
            pack(beside(weights.gate, weights.up), precision),
            pack(weights.down, precision),
        )

    def structure(self) -> Layer:
        norms = (norm.data_ptr() for norm in self._norms)
        return Layer(*norms, *(packed.structure() for packed in self._packed))


def _batch(batch: NativeBatch) -> Batch:
    rows = batch.rows
    return Batch(
        tokens=batch.tokens.data_ptr(),
        slots=batch.slots.data_ptr(),
        sampled=batch.sampled.data_ptr(),
        cos=batch.cos.data_ptr(),
        sin=batch.sin.data_ptr(),
        rows=Rows(
            first=rows.first.data_ptr(),
            span=rows.spans.data_ptr(),
            start=rows.starts.data_ptr(),
            pages=rows.pages.data_ptr(),
            row_pages=rows.pages.shape[1],
            count=len(rows.spans),
        ),
        count=len(batch.tokens),
        sampled_count=len(batch.sampled),
    )


def _cache(store: Tensor) -> Cache:
    layer, half, head, page = (stride * store.element_size() for stride in store.stride()[:4])
    return Cache(store.data_ptr(), layer, half, head, page)
