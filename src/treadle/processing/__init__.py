"""The run scale: a manifest carried out over shards of rows, from the context to the outcome."""

from treadle.processing.context import RunContext
from treadle.processing.dispatch import run_from_manifest
from treadle.processing.job import Job, RunOutcome

__all__ = ["Job", "RunContext", "RunOutcome", "run_from_manifest"]
