"""The weights in a Hugging Face folder: one `model.safetensors`, or several and their index.

Tensors are memory-mapped by the `safetensors` library, which checks a header against its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from treadle.engine.weights.json_file import read_json
from treadle.engine.weights.regular_file import check_regular
from treadle.errors import ArtifactError

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.pkl")


class TensorFiles:
    """All tensors of a folder by name.

    Raises:
        ArtifactError: there are no weights that may be read, or a file is missing, damaged, or holds other
            tensors than the index says.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = _holders(folder)

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._files)

    def read(self, name: str) -> Tensor | None:
        """The tensor as it is stored, its memory that of the file; None when there is none.

        Raises:
            ArtifactError: it cannot be read.
        """
        holder = self._files.get(name)
        try:
            return None if holder is None else holder.get_tensor(name)
        except (SafetensorError, AttributeError) as error:  # the latter: a type that torch lacks
            raise ArtifactError(f"{self._folder}: tensor {name!r} cannot be read: {error}") from error


def _holders(folder: Path) -> dict[str, Any]:
    """Tensor name -> the opened file that holds it."""
    if (folder / WHOLE).is_file():
        whole = _open(folder / WHOLE)
        return dict.fromkeys(whole.keys(), whole)
    if (folder / INDEX).is_file():
        return _sharded(folder, _weight_map(folder / INDEX))
    raise ArtifactError(_no_weights(folder))


def _sharded(folder: Path, placed: Mapping[str, str]) -> dict[str, Any]:
    shards = {file: _open(folder / file) for file in sorted(set(placed.values()))}
    found = {(name, file) for file, shard in shards.items() for name in shard.keys()}  # noqa: SIM118 - no mapping
    if wrong := sorted(found ^ set(placed.items())):
        name, file = wrong[0]
        where = file if wrong[0] in found else INDEX
        raise ArtifactError(
            f"{folder}: {len(wrong)} tensors stand either in {INDEX} or in the files, not in both; the first "
            f"is {name!r}, in {where}: the parts do not belong together, fetch them again"
        )
    return {name: shards[file] for name, file in placed.items()}


def _weight_map(index: Path) -> dict[str, str]:
    placed = read_json(index, dict).get("weight_map")
    if not isinstance(placed, dict) or not all(_is_plain(file) for file in placed.values()):
        raise ArtifactError(
            f"{index}: weight_map should give each tensor a file of this folder: fetch it again"
        )
    return placed


def _is_plain(file: object) -> bool:
    """Whether it names a file of the same folder, and no other place."""
    return isinstance(file, str) and Path(file).name == file and file.endswith(".safetensors")


def _open(path: Path) -> Any:
    try:
        check_regular(path)
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError, MemoryError) as error:  # the last: more than can be mapped
        raise ArtifactError(
            f"{path}: cannot be read as safetensors ({error}); "
            "the file is missing, truncated or of another kind: fetch it again"
        ) from error


def _no_weights(folder: Path) -> str:
    pickled = sorted(file.name for pattern in _PICKLED for file in folder.glob(pattern))
    if not pickled:
        return f"{folder}: no weights: expected {WHOLE}, or {INDEX} with its parts"
    return (
        f"{folder}: the weights are a pickle ({pickled[0]}), which can run any code and is never opened; "
        "where you trust it, load it once with transformers and write it back by save_pretrained"
    )
