"""Where work runs: clients that take jobs, and the handles that follow them."""

from treadle.fray.budget import Budget
from treadle.fray.checks import check_count
from treadle.fray.client import FrayClient
from treadle.fray.current_client import current_client, has_current_client, set_current_client
from treadle.fray.protocol import Client, JobHandle, JobRequest, JobStatus
from treadle.fray.resources import ResourceConfig, machine_resources
from treadle.fray.threads import ThreadClient, parked, stop_requested, stopper

__all__ = [
    "Budget",
    "Client",
    "FrayClient",
    "JobHandle",
    "JobRequest",
    "JobStatus",
    "ResourceConfig",
    "ThreadClient",
    "check_count",
    "current_client",
    "has_current_client",
    "machine_resources",
    "parked",
    "set_current_client",
    "stop_requested",
    "stopper",
]
