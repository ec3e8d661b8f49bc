"""One call of an actor of a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import ray

from treadle.errors import WorkerLostError
from treadle.fray.ray.actor import RayActor
from treadle.fray.ray.job import RayJob
from treadle.fray.ray.losses import is_loss, loss_error
from treadle.fray.ray.task_future import ANSWER_S, Desk
from treadle.fray.ray.ticket import Fate, Start

T = TypeVar("T")

PAUSE_S = 0.05
"""How long after Ray has refused a call it is tried again, in seconds."""


class ActorCall(RayJob[T]):
    """See `JobHandle`. A call that has not begun hears by itself that it was terminated."""

    __slots__ = ("_actor_id", "_gone", "_host", "_used_up")

    def __init__(self, job_id: str, desk: Desk, ref: Any, actor: RayActor[Any]) -> None:
        super().__init__(job_id, desk, "", ref)
        self._actor_id = actor.actor_id
        self._host = actor.host
        self._gone = False
        self._used_up: Fate | None = None

    def terminate(self) -> None:
        """See `JobHandle`. When this returns, the actor has had the time to hear of it."""
        super().terminate()
        self.ask("where", self.job_id, otherwise=None)

    def _cancel(self, *, force: bool) -> None:
        if force and ray.is_initialized():
            ray.kill(self._host, no_restart=False)

    def _failed(self, lane: str, error: BaseException) -> None:
        if is_loss(error):  # so that the next call finds an object made anew, and is not lost too
            self._gone = _is_gone(self._host)
            fate: Fate = self.ask("fate", self._actor_id, otherwise=Fate())
            self.terminated = self.terminated or fate.stopped
            self._used_up = fate if self._gone and fate.made > fate.losses else None
        super()._failed(lane, error)

    def _lost(self, error: BaseException, start: Start | None, tail: Sequence[str]) -> WorkerLostError:
        if self._used_up is None:
            advice = "and create another" if self._gone else "the next call finds the actor made anew"
            return loss_error(self.job_id, error, start, tail, advice)
        made, losses, _ = self._used_up
        used_up = f"its losses={losses} are used up: create another"
        if start is not None:  # it has begun, so this is the call that ran
            return loss_error(self.job_id, error, start, tail, used_up)
        times = "once" if made == 1 else f"{made} times"
        told = WorkerLostError(f"actor {self._actor_id} was lost {times}, and {used_up}")
        told.__cause__ = error
        return told


def _is_gone(host: Any) -> bool:
    """Blocks until the actor answers again, or is known to be gone for good: whether that is so."""
    deadline = time.monotonic() + ANSWER_S
    while ray.is_initialized() and time.monotonic() < deadline:
        try:
            host.idle.remote().future().result(ANSWER_S)
        except ray.exceptions.ActorUnavailableError:
            time.sleep(PAUSE_S)  # Ray has not yet noticed the loss, and has nothing to wait for
        except ray.exceptions.ActorDiedError:
            return True
        except (ray.exceptions.RayError, TimeoutError, CancelledError):
            return False
        else:
            return False
    return False
