"""How many threads torch computes with."""

from __future__ import annotations

import torch

from treadle.errors import ArgumentError


def set_threads(threads: int | None) -> None:
    """Set it for the whole process; None leaves the setting alone.

    Raises:
        ArgumentError: it is below 1.
    """
    if threads is None:
        return
    if threads < 1:
        raise ArgumentError(f"threads must be at least 1, got {threads}")
    torch.set_num_threads(threads)
