"""One step, one owner: a lock beside the output folder, which the system frees when its owner dies."""

from __future__ import annotations

from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType

from filelock import BaseFileLock, FileLock, Timeout

from treadle.errors import StepError, StoppedError
from treadle.fray import parked, stop_requested


class lease:  # noqa: N801 - read as a verb: `with lease(path):`
    """Own the step of that folder for the block; wait as long as another thread or process does.

    A class and no generator: `contextmanager` cannot pass on an exception that is frozen.

    Raises:
        StoppedError: the job was asked to stop while it waited.
        StepError: it is the step itself that waits.
    """

    def __init__(self, output_path: str) -> None:
        self.output_path = output_path
        self._owned = False
        # A soft lock is a file that outlives its owner, and so would the claim.
        self._lock = FileLock(lock_path(output_path), fallback_to_soft=False)

    def __enter__(self) -> None:
        self._refuse_own()
        Path(self.output_path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            _wait_for(self._lock, self.output_path)
        self._owned = True
        self._token: Token[tuple[lease, ...]] = _AROUND.set((*_AROUND.get(), self))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _AROUND.reset(self._token)
        self._owned = False
        self._lock.release()

    def _refuse_own(self) -> None:
        if any(each._owned and each.output_path == self.output_path for each in _AROUND.get()):
            raise StepError(
                f"{self.output_path}: this step is run from inside itself, and would wait for itself for "
                "ever; a step may run other steps only"
            )


_AROUND: ContextVar[tuple[lease, ...]] = ContextVar("treadle leases", default=())


def lock_path(output_path: str) -> str:
    """The lock file beside the folder. It stays, so it also tells that a step once owned the folder."""
    return f"{output_path}.lock"


def _wait_for(lock: BaseFileLock, output_path: str) -> None:
    """Take the lock when its owner is done, who may need the slot of this job to get there."""
    try:
        with parked():
            lock.acquire(cancel_check=stop_requested)
    except Timeout as error:
        raise StoppedError(f"{output_path}: asked to stop while another owner had the step") from error
