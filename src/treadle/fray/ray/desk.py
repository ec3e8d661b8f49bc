"""What a client has for its jobs: a board, what the board tells, and the way by which jobs are sent."""

from __future__ import annotations

import secrets
import sys
from concurrent.futures import Future
from typing import Any

from treadle.fray.environment import EnvironmentConfig
from treadle.fray.ray.board import open_board, open_keeper
from treadle.fray.ray.dispatch import Dispatch
from treadle.fray.ray.news import News
from treadle.fray.ray.tasks import carry
from treadle.fray.ray.ticket import Welcome


class ClientDesk:
    """See `Desk`. With an `anchor`, the board of the client, it is that of jobs that outlive the client.

    `here` says that all workers are on this machine; `node_id` is this machine's.
    """

    def __init__(
        self,
        environment: EnvironmentConfig,
        largest: int,
        *,
        here: bool,
        node_id: str = "",
        anchor: Any = None,
    ) -> None:
        self.name = f"board-{secrets.token_hex(6)}"
        welcome = Welcome(tuple(sys.path), largest, environment, here)
        self.board: Any = (
            open_keeper(self.name, welcome, anchor) if anchor else open_board(self.name, welcome, node_id)
        )
        self.dispatch = Dispatch(
            self, self.name, carry, environment, here=here, prefix="detached." if anchor else ""
        )
        self.orphans: set[Future[Any]] = set()
        self._news = News(self.board)

    def close(self) -> None:
        """The client has ended."""
        self._news.close()

    def heard(self, job_id: str, lots: int) -> None:
        """Return when what the job has printed was printed here, so that its result comes after it."""
        self._news.await_lots(job_id, lots)

    def adopt(self, job: Future[Any]) -> None:
        """Keep a job whose handle nobody holds."""
        self.orphans.add(job)
        job.add_done_callback(self.orphans.discard)
