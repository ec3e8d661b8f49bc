"""Jobs in other processes of this machine: `ProcessClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.fray.processes.client import ProcessClient

__all__ = ["ProcessClient"]


def __getattr__(name: str) -> object:
    # A worker loads modules of this package, and has no use for the driver's side of it.
    if name != "ProcessClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from treadle.fray.processes.client import ProcessClient

    return ProcessClient
