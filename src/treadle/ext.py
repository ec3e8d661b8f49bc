"""What the author of a plugin imports, and nothing else."""

from treadle.domain.result import Counters, ProcessResult, Reject, Transform
from treadle.domain.term_registry import TermRegistry
from treadle.processing.account import Account
from treadle.processing.compile import StoragePlan
from treadle.processing.context import RunContext
from treadle.processing.job import Job
from treadle.processing.runners import PatternRunner, register_pattern_runner
from treadle.processing.transforms import TransformOptions, register_transform

__all__ = [
    "Account",
    "Counters",
    "Job",
    "PatternRunner",
    "ProcessResult",
    "Reject",
    "RunContext",
    "StoragePlan",
    "TermRegistry",
    "Transform",
    "TransformOptions",
    "register_pattern_runner",
    "register_transform",
]
