"""What the author of a plugin imports, and nothing else."""

from treadle.domain.result import Counters, ProcessResult, Reject, Transform
from treadle.domain.row_step import RowStep, Stepped
from treadle.domain.term_registry import TermRegistry
from treadle.errors import MissingColumnError
from treadle.processing.account import Account
from treadle.processing.compile import StoragePlan
from treadle.processing.context import RunContext
from treadle.processing.job import WHOLE, Job
from treadle.processing.runners import PatternRunner, register_mode_runner, register_pattern_runner
from treadle.processing.transforms import (
    RowTransform,
    TransformOptions,
    register_row_transform,
    register_transform,
)
from treadle.processing.units import UnitRun, UnitWork, run_units
from treadle.storage import BadRow, Dataset, OutputSpec, RowBatch, UnitRecord, WorkUnit, list_units
from treadle.storage.formats.backends import register_format
from treadle.storage.formats.format import Format, Part, PartWriter, ReadBackend, WriteBackend

__all__ = [
    "WHOLE",
    "Account",
    "BadRow",
    "Counters",
    "Dataset",
    "Format",
    "Job",
    "MissingColumnError",
    "OutputSpec",
    "Part",
    "PartWriter",
    "PatternRunner",
    "ProcessResult",
    "ReadBackend",
    "Reject",
    "RowBatch",
    "RowStep",
    "RowTransform",
    "RunContext",
    "Stepped",
    "StoragePlan",
    "TermRegistry",
    "Transform",
    "TransformOptions",
    "UnitRecord",
    "UnitRun",
    "UnitWork",
    "WorkUnit",
    "WriteBackend",
    "list_units",
    "register_format",
    "register_mode_runner",
    "register_pattern_runner",
    "register_row_transform",
    "register_transform",
    "run_units",
]
