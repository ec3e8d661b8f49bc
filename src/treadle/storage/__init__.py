"""Rows in and out: read a dataset in batches, write an output that appears whole or not at all.

The names are loaded when they are asked for: the ledger, which is in this room too, needs no tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.later import later

if TYPE_CHECKING:
    from treadle.storage.atomic import write_atomically
    from treadle.storage.checkpoint import Checkpoint
    from treadle.storage.dataset import BadRow, Dataset, OutputSpec, RowBatch, WorkUnit
    from treadle.storage.feed import USUAL_BATCH_ROWS, list_units, read_batches, read_table
    from treadle.storage.formats.backends import write_backend_for
    from treadle.storage.output_manifest import OutputFile, OutputManifest, read_output_manifest
    from treadle.storage.session import Session
    from treadle.storage.shown import shown_url
    from treadle.storage.unit_record import UnitRecord
    from treadle.storage.unit_writer import Staging, UnitWriter

__all__ = [
    "USUAL_BATCH_ROWS",
    "BadRow",
    "Checkpoint",
    "Dataset",
    "OutputFile",
    "OutputManifest",
    "OutputSpec",
    "RowBatch",
    "Session",
    "Staging",
    "UnitRecord",
    "UnitWriter",
    "WorkUnit",
    "list_units",
    "read_batches",
    "read_output_manifest",
    "read_table",
    "shown_url",
    "write_atomically",
    "write_backend_for",
]

_MODULES = {
    "atomic": ("write_atomically",),
    "checkpoint": ("Checkpoint",),
    "dataset": ("BadRow", "Dataset", "OutputSpec", "RowBatch", "WorkUnit"),
    "feed": ("USUAL_BATCH_ROWS", "list_units", "read_batches", "read_table"),
    "formats.backends": ("write_backend_for",),
    "output_manifest": ("OutputFile", "OutputManifest", "read_output_manifest"),
    "session": ("Session",),
    "shown": ("shown_url",),
    "unit_record": ("UnitRecord",),
    "unit_writer": ("Staging", "UnitWriter"),
}
__getattr__, __dir__ = later(__name__, _MODULES)
