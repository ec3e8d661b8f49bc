"""Reads GGUF files: metadata with types, tensors as float32.

Everything is checked when the file is opened, so that a truncated or foreign file is refused before
any work, with its path and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import gguf
import torch
from gguf.quants import dequantize
from torch import Tensor

from treadle.errors import ArtifactError

T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """An opened GGUF file; tensors are read when asked for."""

    path: Path
    fields: Mapping[str, Any]
    tensors: Mapping[str, Any]

    @overload
    def value(self, key: str, kind: type[T]) -> T: ...
    @overload
    def value(self, key: str, kind: type[T], default: T) -> T: ...
    def value(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The metadata under `key`.

        Raises:
            ArtifactError: it is missing and has no default, is not of that kind, or is damaged text.
        """
        field = self.fields.get(key)
        try:
            found = default if field is None else field.contents()
        except UnicodeDecodeError as error:
            raise ArtifactError(
                f"{self.path}: metadata {key!r} is damaged ({error}): fetch it again"
            ) from error
        if not isinstance(found, kind):
            raise ArtifactError(
                f"{self.path}: metadata {key!r} should be {kind.__name__}, got {type(found).__name__}"
            )
        return found

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor of that name as float32, a copy.

        Raises:
            ArtifactError: there is none, of another shape, or quantised in a way that is not known.
        """
        stored = self.tensors.get(name)
        found = None if stored is None else tuple(int(size) for size in reversed(stored.shape))
        if stored is None or found != shape:
            raise ArtifactError(f"{self.path}: tensor {name!r} should have shape {shape}, got {found}")
        try:
            numbers = dequantize(stored.data, stored.tensor_type)
        except NotImplementedError as error:
            raise ArtifactError(f"{self.path}: tensor {name!r} cannot be read: {error}") from error
        return torch.from_numpy(numbers.copy()).view(shape)


class _Reader(gguf.GGUFReader):
    """Stops where the file ends; its base reads on through nothing, as far as a damaged length says."""

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        found = super()._get(offset, dtype, count, override_order)
        if len(found) < count:
            raise ValueError(f"it ends within what it says, at byte {offset:,}")
        return found


def open_gguf(path: Path) -> Checkpoint:
    """Open a GGUF file without reading its tensors.

    Raises:
        ArtifactError: it is no GGUF file, or shorter than it says.
    """
    try:
        reader = _Reader(path)
    except (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError, OSError) as error:
        raise ArtifactError(
            f"{path}: cannot be read as GGUF ({error}); "
            "the file is truncated or of another kind: fetch it again"
        ) from error
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    _check_length(path, reader.tensors)
    return Checkpoint(path, reader.fields, tensors)


def _check_length(path: Path, tensors: list[Any]) -> None:
    needed = max((int(tensor.data_offset) + int(tensor.n_bytes) for tensor in tensors), default=0)
    size = path.stat().st_size
    if size < needed:
        raise ArtifactError(f"{path}: truncated, {size:,} bytes of at least {needed:,}: fetch it again")
