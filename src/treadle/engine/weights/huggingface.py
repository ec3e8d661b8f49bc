"""A model in a Hugging Face folder: `config.json`, safetensors and the files of its tokenizer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import torch
from torch import Tensor

from treadle.engine.weights.checkpoint import Vocabulary, checked
from treadle.engine.weights.huggingface_vocabulary import read_vocabulary
from treadle.engine.weights.json_file import read_json
from treadle.engine.weights.safetensors_files import TensorFiles
from treadle.errors import ArtifactError

T = TypeVar("T")

CONFIG = "config.json"
_KNOWN_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class HuggingFaceCheckpoint:
    """See `Checkpoint`."""

    def __init__(self, folder: Path, config: Mapping[str, Any], files: TensorFiles) -> None:
        self._folder = folder
        self._config = config
        self._files = files

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder

    @property
    def architecture(self) -> str:
        """The first that `config.json` lists."""
        first = next(iter(self.value("architectures", list)), None)
        return checked(f"{self._place('architectures')}[0]", first, str)

    @property
    def names(self) -> Collection[str]:
        """Names of all tensors."""
        return self._files.names

    @overload
    def value(self, key: str, kind: type[T]) -> T: ...
    @overload
    def value(self, key: str, kind: type[T], default: T) -> T: ...
    def value(self, key: str, kind: type[T], default: T | None = None) -> T:
        """See `Checkpoint.value`."""
        return checked(self._place(key), self._config.get(key), kind, default)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `Checkpoint.tensor`."""
        stored = self._files.read(name)
        if stored is None or stored.shape != shape:
            found = None if stored is None else tuple(stored.shape)
            raise ArtifactError(f"{self.path}: tensor {name!r} should have shape {shape}, got {found}")
        if stored.dtype not in _KNOWN_TYPES:
            raise ArtifactError(f"{self.path}: tensor {name!r} is of {stored.dtype}, known: {_KNOWN_TYPES}")
        return stored.float()

    def vocabulary(self) -> Vocabulary:
        """See `Checkpoint.vocabulary`."""
        return read_vocabulary(self._folder, self._config)

    def _place(self, key: str) -> str:
        return f"{self._folder / CONFIG}: {key}"


def open_huggingface(folder: Path) -> HuggingFaceCheckpoint:
    """Open a folder without reading its tensors.

    Raises:
        ArtifactError: a file is missing or damaged, or the weights are pickled or quantised.
    """
    if not (folder / CONFIG).exists():
        raise ArtifactError(
            f"{folder}: the folder has no {CONFIG}: a Hugging Face folder holds {CONFIG}, tokenizer.json and "
            "*.safetensors"
        )
    config = read_json(folder / CONFIG, dict)
    if config.get("quantization_config"):
        raise ArtifactError(
            f"{folder / CONFIG}: quantised weights (quantization_config) are not read here: "
            "take the model as it was before quantising, or a GGUF file of it"
        )
    return HuggingFaceCheckpoint(folder, config, TensorFiles(folder))
