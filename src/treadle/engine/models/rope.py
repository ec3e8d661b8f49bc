"""What a checkpoint says of its rotation: the base of the wave lengths, and how they are stretched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treadle.engine.weights import Checkpoint
from treadle.engine.weights.checkpoint import checked
from treadle.errors import ArtifactError

FACTORS = "rope_freqs.weight"
"""A tensor of GGUF files whose rotation is scaled: what each frequency is divided by."""


@dataclass(frozen=True)
class Rope:
    """`base` of the wave lengths; `factors` that the frequencies are divided by, empty for none."""

    base: float
    factors: tuple[float, ...] = ()


def read_rope(checkpoint: Checkpoint, width: int) -> Rope:
    """The rotation of heads of that width.

    Raises:
        ArtifactError: a value is missing or of another kind, or the frequencies are scaled in a way that is
            not known.
    """
    nested: dict[str, Any] = checkpoint.value("rope_parameters", dict, {})
    scaling = nested or checkpoint.value("rope_scaling", dict, {})
    base = _number(checkpoint, nested, "rope_theta", checkpoint.value("rope_theta", float, 10000.0))
    if base <= 0:
        raise ArtifactError(f"{checkpoint.path}: rope_theta should be above 0, got {base}")
    if FACTORS in checkpoint.names:
        return Rope(base, tuple(checkpoint.tensor(FACTORS, (width // 2,)).tolist()))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind in ("default", "none"):
        return Rope(base)
    if kind != "llama3":
        raise ArtifactError(f"{checkpoint.path}: scaled rotation {kind!r} is not known here, known: llama3")
    return Rope(base, _llama3(checkpoint, scaling, base, width))


def _llama3(checkpoint: Checkpoint, scaling: Mapping[str, Any], base: float, width: int) -> tuple[float, ...]:
    """Long waves are stretched by `factor`, short ones are left, those between by something between."""
    factor, low, high = (
        _number(checkpoint, scaling, key) for key in ("factor", "low_freq_factor", "high_freq_factor")
    )
    context = _number(checkpoint, scaling, "original_max_position_embeddings")
    if factor <= 0 or low >= high:
        raise ArtifactError(f"{checkpoint.path}: rope_scaling makes no sense: {dict(scaling)}")

    def divisor(pair: int) -> float:
        turns: float = context / (2 * math.pi * base ** (2 * pair / width))
        short = min(max((turns - low) / (high - low), 0.0), 1.0)
        return 1.0 / (short + (1.0 - short) / factor)

    return tuple(divisor(pair) for pair in range(width // 2))


def _number(checkpoint: Checkpoint, said: Mapping[str, Any], key: str, default: float | None = None) -> float:
    return checked(f"{checkpoint.path}: rope: {key}", said.get(key), float, default)
