"""The engine: causal language models in PyTorch, in which everything stateful is a resource.

The nouns that travel load at once; `Engine` and with it torch load when they are first asked for.
"""

import os
from typing import TYPE_CHECKING

from treadle.engine.requests import Completion, Delta, GenerationRequest, Message, TokenLogprob
from treadle.errors import MissingExtraError

if TYPE_CHECKING:
    from treadle.engine.engine import Engine

__all__ = ["Completion", "Delta", "Engine", "GenerationRequest", "Message", "TokenLogprob"]


def __getattr__(name: str) -> object:
    # Here, not at the top: torch takes over a second to load, and is an optional package.
    if name != "Engine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # torch's idle threads spin for work by default. On busy cores that keeps the working ones waiting: two
    # threads beside other load took 65 s for what takes 16 s when they sleep. Read once, when torch loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from treadle.engine.engine import Engine
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "torch", "engine", "the engine") from error
    return Engine
