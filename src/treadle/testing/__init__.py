"""For the tests of your steps: stores that are gone afterwards, a recording client, a log of events."""

from treadle.execution.handles.artifact_step import materialized_config
from treadle.testing.client import RecordingClient
from treadle.testing.events import EventLog
from treadle.testing.stores import memory_store, temporary_store

__all__ = ["EventLog", "RecordingClient", "materialized_config", "memory_store", "temporary_store"]
