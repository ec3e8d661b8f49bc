"""A model in a GGUF file, in the words of a `Checkpoint`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, overload

import torch
from torch import Tensor

from treadle.engine.weights.checkpoint import Vocabulary, checked
from treadle.engine.weights.dequantize import bytes_of, dequantize
from treadle.engine.weights.gguf_config import head_width, scaling, turned_part
from treadle.engine.weights.gguf_file import GgufFile, StoredTensor, read_gguf
from treadle.engine.weights.gguf_names import CONFIG_KEYS, spoken_name, stored_name
from treadle.engine.weights.gguf_vocabulary import read_vocabulary
from treadle.errors import ArtifactError

T = TypeVar("T")

# Their converter interleaves the halves of each head, because GGUF rotates neighbours.
_INTERLEAVED = {"llama"}
_HEADS = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}


class GgufCheckpoint:
    """See `Checkpoint`; messages have the names that stand in the file."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self._spans = {name: _span(file, name, tensor) for name, tensor in file.tensors.items()}
        _check_apart(file.path, self._spans)

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @cached_property
    def architecture(self) -> str:
        """Such as `llama`."""
        return self._metadata("general.architecture", str)

    @cached_property
    def names(self) -> Collection[str]:
        """All tensors, as Hugging Face calls them."""
        return {spoken_name(each) for each in self._file.tensors}

    @overload
    def value(self, key: str, kind: type[T]) -> T: ...
    @overload
    def value(self, key: str, kind: type[T], default: T) -> T: ...
    def value(self, key: str, kind: type[T], default: T | None = None) -> T:
        """See `Checkpoint.value`."""
        if key in _DERIVED:
            return checked(f"{self.path}: {key}", _DERIVED[key](self), kind, default)
        return self._metadata(f"{self.architecture}.{CONFIG_KEYS.get(key, key)}", kind, default)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `Checkpoint.tensor`; rows of queries and keys pair number i of a head with i + width / 2."""
        stored = stored_name(name)
        found = self._file.tensors.get(stored)
        if found is None or found.shape != shape:
            raise ArtifactError(
                f"{self.path}: tensor {stored!r} should have shape {shape}, got {found and found.shape}"
            )
        begin, end = self._spans[stored]
        try:
            numbers = dequantize(torch.from_numpy(self._file.data[begin:end]), found.kind, found.numbers)
        except ValueError as error:
            raise ArtifactError(f"{self.path}: tensor {stored!r} cannot be read: {error}") from error
        return self._in_halves(name, numbers.view(shape))

    def vocabulary(self) -> Vocabulary:
        """See `Checkpoint.vocabulary`."""
        return read_vocabulary(self.path, self._metadata)

    @overload
    def _metadata(self, key: str, kind: type[T]) -> T: ...
    @overload
    def _metadata(self, key: str, kind: type[T], default: T | None) -> T: ...
    def _metadata(self, key: str, kind: type[T], default: T | None = None) -> T:
        return checked(f"{self.path}: metadata {key!r}", self._file.metadata.get(key), kind, default)

    def _in_halves(self, name: str, numbers: Tensor) -> Tensor:
        heads = next((key for part, key in _HEADS.items() if f".{part}." in name), None)
        if heads is None or self.architecture not in _INTERLEAVED:
            return numbers
        return paired_halves(numbers, self.value(heads, int, self.value("num_attention_heads", int)))


def open_gguf(path: Path) -> GgufCheckpoint:
    """Open a GGUF file without reading its tensors.

    Raises:
        ArtifactError: it is no GGUF file, or shorter than it says.
    """
    return GgufCheckpoint(read_gguf(path))


def paired_halves(rows: Tensor, heads: int) -> Tensor:
    """Rows of an interleaved query or key weight, or bias, in the order that `Rotation.turn` expects."""
    pairs = rows.view(heads, len(rows) // heads // 2, 2, -1)
    return pairs.transpose(1, 2).reshape(rows.shape)


def _span(file: GgufFile, name: str, tensor: StoredTensor) -> tuple[int, int]:
    """First byte, and the one after the last."""
    try:
        # By rows, since no block goes on from one to the next.
        size = bytes_of(tensor.kind, math.prod(tensor.shape[-1:])) * math.prod(tensor.shape[:-1])
    except ValueError as error:
        raise ArtifactError(
            f"{file.path}: tensor {name!r} cannot be read: {error}: fetch it again"
        ) from error
    begin = file.start + tensor.offset
    if begin + size > len(file.data):
        raise ArtifactError(
            f"{file.path}: truncated, {len(file.data):,} bytes of at least {begin + size:,}: fetch it again"
        )
    return begin, begin + size


def _check_apart(path: Path, spans: dict[str, tuple[int, int]]) -> None:
    in_order = sorted(spans.items(), key=lambda each: each[1])
    for (one, (_, end)), (other, (begin, _)) in pairwise(in_order):
        if begin < end:
            raise ArtifactError(f"{path}: tensors {one!r} and {other!r} overlap: fetch it again")


_DERIVED: dict[str, Callable[[GgufCheckpoint], Any]] = {
    "vocab_size": lambda it: len(it._metadata("tokenizer.ggml.tokens", list)),
    "tie_word_embeddings": lambda it: "lm_head.weight" not in it.names,
    "attention_bias": lambda it: "model.layers.0.self_attn.q_proj.bias" in it.names,
    "head_dim": head_width,
    "partial_rotary_factor": turned_part,
    "rope_scaling": scaling,
}
"""Config values that GGUF says otherwise than by a key of their own."""
