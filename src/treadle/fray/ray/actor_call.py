"""One call of an actor of a Ray cluster."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import ray

from treadle.fray.ray.job import RayJob
from treadle.fray.ray.losses import is_loss
from treadle.fray.ray.task_future import ANSWER_S, Desk

T = TypeVar("T")

PAUSE_S = 0.05
"""How long after Ray has refused a call it is tried again, in seconds."""


class ActorCall(RayJob[T]):
    """See `JobHandle`. A call that has not begun hears by itself that it was terminated."""

    __slots__ = ("_host",)

    def __init__(self, job_id: str, desk: Desk, ref: Any, host: Any) -> None:
        super().__init__(job_id, desk, "", ref)
        self._host = host

    def terminate(self) -> None:
        """See `JobHandle`. When this returns, the actor has had the time to hear of it."""
        super().terminate()
        self.ask("where", self.job_id, otherwise=None)

    def _cancel(self, *, force: bool) -> None:
        if force and ray.is_initialized():
            ray.kill(self._host, no_restart=False)

    def _failed(self, lane: str, error: BaseException) -> None:
        if is_loss(error):  # so that the next call finds an object made anew, and is not lost too
            _await_return(self._host)
        super()._failed(lane, error)


def _await_return(host: Any) -> None:
    """Block until the actor answers again, or is known to be gone for good."""
    deadline = time.monotonic() + ANSWER_S
    while ray.is_initialized() and time.monotonic() < deadline:
        try:
            host.idle.remote().future().result(ANSWER_S)
        except ray.exceptions.ActorUnavailableError:
            time.sleep(PAUSE_S)  # Ray has not yet noticed the loss, and has nothing to wait for
        except (ray.exceptions.RayError, TimeoutError, CancelledError):
            return
        else:
            return
