"""What sentence-transformers keeps beside a model: how the states of its tokens become one vector.

Known is the mean of all tokens; whether a folder asks for vectors of length 1 or not, it gets them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treadle.engine.weights.checkpoint import checked
from treadle.engine.weights.json_file import read_json, read_object_if_there
from treadle.errors import ArtifactError

_MODULES = "modules.json"
_KNOWN = ("Normalize", "Pooling", "Transformer")
_MODE, _MEAN = "pooling_mode_", "pooling_mode_mean_tokens"


def check_pooling(folder: Path) -> None:
    """Refuse a folder that asks for other vectors; one that says nothing is pooled by the mean.

    Raises:
        ArtifactError: it asks for them, or what it says is damaged.
    """
    for kind, place in _modules(folder):
        if kind not in _KNOWN:
            raise ArtifactError(f"{folder / _MODULES}: {kind} is not known here, known: {', '.join(_KNOWN)}")
        said = read_object_if_there(folder / place / "config.json") if kind == "Pooling" else {}
        modes = sorted(key for key, on in said.items() if key.startswith(_MODE) and on is True)
        if modes not in ([], [_MEAN]):
            raise ArtifactError(f"{folder / place}: {', '.join(modes)} is not known here, known: {_MEAN}")


def longest_text(folder: Path, positions: int) -> int:
    """Tokens of a text at most: what the folder says, but not more than there are positions.

    Raises:
        ArtifactError: it says no number.
    """
    said = read_object_if_there(folder / "sentence_bert_config.json").get("max_seq_length")
    return min(positions, checked(f"{folder}: max_seq_length", said, int, positions))


def _modules(folder: Path) -> list[tuple[str, str]]:
    """Kinds and folders of the modules, none where there is no list."""
    path = folder / _MODULES
    listed = read_json(path, list) if path.exists() else []
    return [_module(path, checked(f"{path}: each module", each, dict)) for each in listed]


def _module(path: Path, said: dict[str, Any]) -> tuple[str, str]:
    kind, place = (checked(f"{path}: {key}", said.get(key), str) for key in ("type", "path"))
    if Path(place).name != place:
        raise ArtifactError(f"{path}: {place!r} should be a folder within this one: fetch it again")
    # `sentence_transformers.models.Pooling`: releases have moved the class, not renamed it.
    return kind.rpartition(".")[2], place
