"""What a client has for its jobs: a board, what the board tells, and the way by which jobs are sent."""

from __future__ import annotations

import secrets
import sys
import threading
from collections import OrderedDict
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import ray

from treadle.fray.environment import EnvironmentConfig
from treadle.fray.ray.board import open_board, open_keeper
from treadle.fray.ray.dispatch import Dispatch
from treadle.fray.ray.remote import carry
from treadle.fray.ray.ticket import Lot, Piece, Welcome

PATIENCE_S = 10.0
"""How long a result waits for output that was sent before it, in seconds."""

REMEMBERED = 10_000
"""Of how many jobs it is known how much of their output was printed."""


class ClientDesk:
    """See `Desk`. With an `anchor`, the board of the client, it is that of jobs that outlive the client.

    `here` says that all workers are on this machine; `node_id` is this machine's.
    """

    def __init__(
        self,
        environment: EnvironmentConfig,
        largest: int,
        grace: float,
        *,
        here: bool,
        node_id: str = "",
        anchor: Any = None,
    ) -> None:
        self.name = f"board-{secrets.token_hex(6)}"
        self.grace = grace
        welcome = Welcome(tuple(sys.path), largest, environment, here, grace)
        self.board: Any = (
            open_keeper(self.name, welcome, anchor) if anchor else open_board(self.name, welcome, node_id)
        )
        self.dispatch = Dispatch(
            self, self.name, carry, environment, here=here, prefix="detached." if anchor else ""
        )
        self.orphans: set[Future[Any]] = set()
        self._printer = Printer(self.board)

    def close(self) -> None:
        """The client has ended."""
        self._printer.close()

    def heard(self, job_id: str, lots: int) -> None:
        """Return when what the job has printed was printed here, so that its result comes after it."""
        self._printer.await_lots(job_id, lots)

    def adopt(self, job: Future[Any]) -> None:
        """Keep a job whose handle nobody holds."""
        self.orphans.add(job)
        job.add_done_callback(self.orphans.discard)


class Printer:
    """Prints here what jobs print, as the board hears it, in a daemon thread that ends with the board."""

    def __init__(self, board: Any) -> None:
        self._board = board
        self._printed: OrderedDict[str, int] = OrderedDict()
        self._changed = threading.Condition()
        self._open = True
        self._answers: SimpleQueue[Future[tuple[int, list[Lot]]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen, name="treadle-printer", daemon=True)
        self._thread.start()

    def await_lots(self, job_id: str, lots: int) -> None:
        """Return when so many lots of the job were printed, or when they do not come."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open or self._printed.get(job_id, 0) >= lots, PATIENCE_S)

    def close(self) -> None:
        """Print what has come so far, and ask no more."""
        self._answers.put(None)
        # Ray would end the thread in the middle of a call, with a SystemExit.
        self._thread.join(PATIENCE_S)
        self._end()

    def _end(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _listen(self) -> None:
        seen = 0
        try:
            while self._open:
                seen, lots = self._news(seen)
                for lot in lots:
                    self._print(lot)
        except Exception:  # noqa: BLE001 - the board has ended, or the connection has: so does this
            self._end()

    def _news(self, seen: int) -> tuple[int, list[Lot]]:
        """What has come since; when the client closes, at once."""
        if ray.is_initialized():  # a call of Ray would start a cluster else
            self._board.news.remote(seen).future().add_done_callback(self._answers.put)
        answer = self._answers.get()
        if answer is None:
            self._open = False
            if not ray.is_initialized():
                return seen, []
            answer = self._board.news.remote(seen, 0).future()
        return answer.result(PATIENCE_S)

    def _print(self, lot: Lot) -> None:
        for piece in lot.pieces:
            _print(piece)
        with self._changed:
            self._printed[lot.job_id] = lot.number
            while len(self._printed) > REMEMBERED:
                self._printed.popitem(last=False)
            self._changed.notify_all()


def _print(piece: Piece) -> None:
    kind, data = piece
    stream = sys.stdout if kind == "stdout" else sys.stderr
    if stream is None:
        return
    try:
        stream.write(data.decode(errors="replace"))
        stream.flush()
    except (OSError, ValueError):  # the stream is closed, which is no fault of the job
        return
