"""Checkpoints: what models are made from, read from GGUF files and Hugging Face folders."""

from pathlib import Path

from treadle.engine.weights.checkpoint import Checkpoint, Reading, Vocabulary
from treadle.engine.weights.gguf_checkpoint import open_gguf
from treadle.engine.weights.huggingface import open_huggingface
from treadle.errors import ArtifactError

__all__ = ["Checkpoint", "Reading", "Vocabulary", "open_checkpoint", "open_gguf", "open_huggingface"]

_PARTS = (".bin", ".json", ".safetensors")


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a GGUF file, or a Hugging Face folder, without reading its tensors.

    Raises:
        ArtifactError: it is damaged, truncated, or of another kind.
    """
    if path.suffix in _PARTS and path.is_file():
        raise ArtifactError(f"{path}: a part of a Hugging Face folder: give the folder, {path.parent}")
    return open_huggingface(path) if path.is_dir() else open_gguf(path)
