"""The engine: language models and encoders in PyTorch, in which everything stateful is a resource.

The nouns that travel load at once; `Engine` and `Encoder`, and with them torch, load when first asked for.
"""

import importlib
import os
from typing import TYPE_CHECKING

from treadle.engine.requests import Completion, Delta, GenerationRequest, Message, TokenLogprob
from treadle.errors import MissingExtraError

if TYPE_CHECKING:
    from treadle.engine.encoder import Encoder
    from treadle.engine.engine import Engine

__all__ = ["Completion", "Delta", "Encoder", "Engine", "GenerationRequest", "Message", "TokenLogprob"]

_LATER = {"Encoder": "treadle.engine.encoder", "Engine": "treadle.engine.engine"}


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def __getattr__(name: str) -> object:
    # Here, not at the top: torch takes over a second to load, and is an optional package.
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # torch's idle threads spin for work by default. On busy cores that keeps the working ones waiting: two
    # threads beside other load took 65 s for what takes 16 s when they sleep. Read once, when torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # torch loads numpy from C code that drops whatever happens there, Ctrl-C too.
    importlib.import_module("numpy")
    try:
        return getattr(importlib.import_module(_LATER[name]), name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "torch", "engine", "the engine") from error
