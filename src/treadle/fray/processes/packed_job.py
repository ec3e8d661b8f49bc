"""The handle of a job whose outcome arrives as bytes; opened when it is asked for, and only then."""

from __future__ import annotations

import threading
from typing import Any, TypeVar, cast

from treadle.fray.ending import cancelled, stopped_by
from treadle.fray.followed import FollowedJob
from treadle.fray.parcel import open_outcome, returned
from treadle.fray.processes.channel import Data

T = TypeVar("T")

_NOT_OPEN: Any = object()


class PackedJob(FollowedJob[T]):
    """What driver and worker share of a `JobHandle`; its future holds no result."""

    __slots__ = ("_error", "_opening", "_packed_outcome", "_value")

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self._packed_outcome: Data = b""
        self._error: BaseException | None = None
        self._value: Any = _NOT_OPEN
        self._opening = threading.Lock()

    def logs(self, max_lines: int = 100) -> list[str]:
        """The last lines that the job has printed so far; see `JobHandle`."""
        raise NotImplementedError

    def end(self, outcome: Data) -> None:
        """The job has ended like this; it must be running."""
        self._packed_outcome = outcome
        self.future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """The job has ended by what is no error of its function; it must be running."""
        self._error = error
        self.future.set_result(None)

    def _has_succeeded(self) -> bool:
        if self._error is not None:
            return False
        return self._value is not _NOT_OPEN or returned(self._packed_outcome)

    def _outcome(self) -> T:
        if self.future.cancelled():
            raise cancelled(self._id)
        with self._opening:
            if self._error is not None:
                raise self._error
            if self._value is _NOT_OPEN:
                self._open()
            return cast("T", self._value)

    def _open(self) -> None:
        try:
            self._value = open_outcome(self._packed_outcome)
        except BaseException as error:
            if returned(self._packed_outcome):
                raise
            self._error = stopped_by(self._id, error) if self.terminated else error
            raise self._error  # noqa: B904 - its cause is set
        finally:
            if self._value is not _NOT_OPEN or self._error is not None:
                self._packed_outcome = b""
