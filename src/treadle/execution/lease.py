"""One step, one owner: a lock beside the output folder, which the system frees when its owner dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from treadle.errors import StepError
from treadle.fray import parked, stop_requested


@contextmanager
def lease(output_path: str) -> Iterator[None]:
    """Own the step of that folder for the block; wait as long as another thread or process does.

    Raises:
        StepError: the job was asked to stop while it waited.
    """
    Path(output_path).parent.mkdir(parents=True, exist_ok=True)
    # A soft lock is a file that outlives its owner, and so would the claim.
    lock = FileLock(f"{output_path}.lock", fallback_to_soft=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        _wait_for(lock, output_path)
    try:
        yield
    finally:
        lock.release()


def _wait_for(lock: BaseFileLock, output_path: str) -> None:
    """Take the lock when its owner is done, who may need the slot of this job to get there."""
    try:
        with parked():
            lock.acquire(cancel_check=stop_requested)
    except Timeout as error:
        raise StepError(f"{output_path}: asked to stop while another owner had the step") from error
