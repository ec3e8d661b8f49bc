"""Config values that GGUF says otherwise than by a key of their own, in the words of `config.json`."""

from __future__ import annotations

from typing import Any

from treadle.engine.weights.checkpoint import Checkpoint
from treadle.errors import ArtifactError


def head_width(checkpoint: Checkpoint) -> int | None:
    """Numbers of a head; None leaves it to the widths of the state and to the number of heads.

    Raises:
        ArtifactError: heads of keys and of values differ.
    """
    keys, values = (checkpoint.value(f"attention.{name}_length", int, 0) for name in ("key", "value"))
    if keys != values:
        raise ArtifactError(
            f"{checkpoint.path}: heads of keys have {keys} numbers, of values {values}: known are alike"
        )
    return keys or checkpoint.value("rope.dimension_count", int, 0) or None


def turned_part(checkpoint: Checkpoint) -> float:
    """How much of a head the rotation turns."""
    width = head_width(checkpoint)
    return checkpoint.value("rope.dimension_count", int, width) / width if width else 1.0


def scaling(checkpoint: Checkpoint) -> dict[str, Any]:
    """How the rotation is scaled; a kind of `none` is no scaling."""
    older = checkpoint.value("rope.scale_linear", float, 1.0)  # before there were kinds
    if older != 1.0:
        return {"rope_type": "linear", "factor": older}
    kind = checkpoint.value("rope.scaling.type", str, "none")
    return {"rope_type": kind, "factor": checkpoint.value("rope.scaling.factor", float, 1.0)}
