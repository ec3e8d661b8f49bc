"""How many threads torch computes with."""

from __future__ import annotations

import torch

from treadle.errors import ArgumentError

_MOST = 1024


def set_threads(threads: int | None) -> None:
    """Set it for the whole process; None leaves the setting alone.

    Raises:
        ArgumentError: it is below 1, or above 1,024.
    """
    if threads is None:
        return
    # Where the system gives no more threads, the library that makes them ends the process.
    if not 1 <= threads <= _MOST:
        raise ArgumentError(f"threads must be a whole number from 1 to {_MOST:,}, got {threads:,}")
    torch.set_num_threads(threads)
