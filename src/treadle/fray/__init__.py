"""Where work runs: clients that take jobs, and the handles that follow them.

The names are loaded when they are asked for: a worker that starts has no use for most of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.fray.actors import ActorGroup, create_actor_group
    from treadle.fray.budget import Budget
    from treadle.fray.checks import check_count
    from treadle.fray.client import FrayClient
    from treadle.fray.current import current_client, has_current_client, set_current_client
    from treadle.fray.default import default_client
    from treadle.fray.environment import EnvironmentConfig
    from treadle.fray.mapping.job_map import Tick, current_lane, job_map
    from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle, JobRequest, JobStatus
    from treadle.fray.resources import ResourceConfig, machine_resources
    from treadle.fray.running_job import parked, stop_requested, stopper
    from treadle.fray.threads import ThreadClient
    from treadle.fray.travelling import Travelling
    from treadle.fray.waiting import as_completed, wait_all

__all__ = [
    "ActorGroup",
    "ActorHandle",
    "ActorRequest",
    "Budget",
    "Client",
    "EnvironmentConfig",
    "FrayClient",
    "JobHandle",
    "JobRequest",
    "JobStatus",
    "ResourceConfig",
    "ThreadClient",
    "Tick",
    "Travelling",
    "as_completed",
    "check_count",
    "create_actor_group",
    "current_client",
    "current_lane",
    "default_client",
    "has_current_client",
    "job_map",
    "machine_resources",
    "parked",
    "set_current_client",
    "stop_requested",
    "stopper",
    "wait_all",
]

_MODULES = {
    "actors": ("ActorGroup", "create_actor_group"),
    "budget": ("Budget",),
    "checks": ("check_count",),
    "client": ("FrayClient",),
    "current": ("current_client", "has_current_client", "set_current_client"),
    "default": ("default_client",),
    "environment": ("EnvironmentConfig",),
    "mapping.job_map": ("Tick", "current_lane", "job_map"),
    "protocol": ("ActorHandle", "ActorRequest", "Client", "JobHandle", "JobRequest", "JobStatus"),
    "resources": ("ResourceConfig", "machine_resources"),
    "running_job": ("parked", "stop_requested", "stopper"),
    "threads": ("ThreadClient",),
    "travelling": ("Travelling",),
    "waiting": ("as_completed", "wait_all"),
}
__getattr__, __dir__ = later(__name__, _MODULES)
