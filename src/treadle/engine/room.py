"""Whether a cache has room in the memory of this machine, told before any of it is built."""

from __future__ import annotations

import psutil

from treadle.engine.models.architectures import LanguageModel
from treadle.engine.models.build import stored_type
from treadle.engine.resources.kv_store import KvShape
from treadle.errors import ArgumentError


def shape_of(model: LanguageModel) -> KvShape:
    """What one token leaves behind in the cache of a model."""
    config = model.config
    return KvShape(config.layers, config.kv_heads, config.head_width)


def check_room(model: LanguageModel, tokens: int) -> None:
    """See that keys and values of so many tokens fit into the memory that this machine has.

    Raises:
        ArgumentError: they do not; says how much they need and how much there is.
    """
    needed, there = shape_of(model).bytes_of(tokens, stored_type(model.precision)), _memory()
    if needed > there:
        raise ArgumentError(
            f"a cache for {tokens:,} tokens does not fit into memory: it needs {_gigabytes(needed)}, this "
            f"machine has {_gigabytes(there)}: load with fewer cache_tokens"
        )


def _memory() -> int:
    return psutil.virtual_memory().total


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
