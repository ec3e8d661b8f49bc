"""Rows in and out: read a dataset in batches, write an output that appears whole or not at all."""

from treadle.storage.atomic import clear_leftovers, write_atomically
from treadle.storage.dataset import BadRow, Dataset, RowBatch, WorkUnit
from treadle.storage.feed import list_units, read_batches, read_table
from treadle.storage.formats.backends import write_backend_for
from treadle.storage.output_manifest import OutputFile, OutputManifest, read_output_manifest
from treadle.storage.session import Session

__all__ = [
    "BadRow",
    "Dataset",
    "OutputFile",
    "OutputManifest",
    "RowBatch",
    "Session",
    "WorkUnit",
    "clear_leftovers",
    "list_units",
    "read_batches",
    "read_output_manifest",
    "read_table",
    "write_atomically",
    "write_backend_for",
]
