"""Jobs in other processes of this machine: `ProcessClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.fray.processes.client import ProcessClient

__all__ = ["ProcessClient"]

# A worker loads modules of this package, and has no use for the driver's side of it.
__getattr__, __dir__ = later(__name__, {"client": ("ProcessClient",)})
