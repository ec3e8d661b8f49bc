"""Starts the hosts of actors."""

from __future__ import annotations

from typing import Any

import ray

from treadle.fray.ray.host import Host
from treadle.fray.ray.ticket import Opening


def new_host(opening: Opening) -> Any:
    """Start the host of an actor; it ends with whoever calls this, or by `ray.kill`."""
    return ray.remote(Host).options(**opening.options).remote(opening.make, opening.ticket)
