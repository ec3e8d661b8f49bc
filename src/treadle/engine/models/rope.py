"""What a checkpoint says of its rotation: the base of the wave lengths, and how they are stretched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treadle.engine.weights import Checkpoint
from treadle.engine.weights.checkpoint import checked
from treadle.errors import ArtifactError

# Dynamic scaling begins beyond the context that the model states, where this engine ends.
_UNSCALED = ("default", "none", "dynamic")

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
    if (part := _number(checkpoint, nested, "partial_rotary_factor", 1.0)) != 1.0:
        raise ArtifactError(f"{checkpoint.path}: partial_rotary_factor {part} is not known here, known: 1.0")
    if FACTORS in checkpoint.names:
        return Rope(base, tuple(checkpoint.tensor(FACTORS, (width // 2,)).tolist()))
    return Rope(base, _factors(checkpoint, scaling, base, width))


def _factors(
    checkpoint: Checkpoint, scaling: Mapping[str, Any], base: float, width: int
) -> tuple[float, ...]:
    said = scaling.get("rope_type", scaling.get("type"))
    kind = checked(f"{checkpoint.path}: rope: rope_type", said, str, "default")
    if kind in _UNSCALED:
        return ()
    if kind == "linear":
        return (_positive(checkpoint, scaling, "factor"),) * (width // 2)
    if kind == "llama3":
        return _llama3(checkpoint, scaling, base, width)
    known = ", ".join(sorted((*_UNSCALED, "linear", "llama3")))
    raise ArtifactError(f"{checkpoint.path}: scaled rotation {kind!r} is not known here, known: {known}")


def _llama3(checkpoint: Checkpoint, scaling: Mapping[str, Any], base: float, width: int) -> tuple[float, ...]:
    """Long waves are stretched by `factor`, short ones are left, those between by something between."""
    factor, low, high, context = (
        _positive(checkpoint, scaling, key)
        for key in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    if low >= high:
        raise ArtifactError(
            f"{checkpoint.path}: rope: low_freq_factor {low} should be below high_freq_factor {high}"
        )

    def divisor(pair: int) -> float:
        turns: float = context / (2 * math.pi * base ** (2 * pair / width))
        short = min(max((turns - low) / (high - low), 0.0), 1.0)
        return 1.0 / (short + (1.0 - short) / factor)

    return tuple(divisor(pair) for pair in range(width // 2))


def _positive(checkpoint: Checkpoint, said: Mapping[str, Any], key: str) -> float:
    found = _number(checkpoint, said, key)
    if found <= 0:
        raise ArtifactError(f"{checkpoint.path}: rope: {key} should be above 0, got {found}")
    return found


def _number(checkpoint: Checkpoint, said: Mapping[str, Any], key: str, default: float | None = None) -> float:
    return checked(f"{checkpoint.path}: rope: {key}", said.get(key), float, default)
