"""Where work runs: clients that take jobs, and the handles that follow them."""

from treadle.fray.client import FrayClient
from treadle.fray.current_client import current_client, has_current_client, set_current_client
from treadle.fray.protocol import Client, JobHandle, JobRequest, JobStatus, ResourceConfig
from treadle.fray.threads import ThreadClient, parked, stop_requested

__all__ = [
    "Client",
    "FrayClient",
    "JobHandle",
    "JobRequest",
    "JobStatus",
    "ResourceConfig",
    "ThreadClient",
    "current_client",
    "has_current_client",
    "parked",
    "set_current_client",
    "stop_requested",
]
