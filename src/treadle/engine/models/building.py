"""Chooses by which code a Llama model runs."""

from __future__ import annotations

import ctypes
import logging
from functools import cache

from treadle.engine.kernels.library import shared_library
from treadle.engine.models.build import Build
from treadle.engine.models.llama import Llama, LlamaConfig, Load
from treadle.engine.models.native_llama import NativeLlama, unfit
from treadle.errors import EngineError

_LOG = logging.getLogger("treadle")


def build_llama(config: LlamaConfig, load: Load, build: Build) -> Llama | NativeLlama:
    """The model as `build` asks for; where `auto` cannot have compiled kernels, that is logged once.

    Raises:
        ArtifactError: `load` has no such tensor, or of another shape.
        EngineError: `native` kernels were asked for, and cannot be had.
    """
    library = None
    if build.kernels == "native":
        library = shared_library()
    elif build.kernels == "auto" and not unfit(config):
        library = _library_if_any()
    if library is None:
        return Llama(config, load, precision=build.precision)
    return NativeLlama(config, load, library, precision=build.precision)


@cache
def _library_if_any() -> ctypes.CDLL | None:
    try:
        return shared_library()
    except EngineError as error:
        _LOG.warning("the engine runs without its compiled kernels, several times slower: %s", error)
        return None
