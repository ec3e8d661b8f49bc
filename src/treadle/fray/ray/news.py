"""What the jobs of a client print is printed by the process of the client too, as it comes."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any

import ray

from treadle.fray.ray.ticket import Lot, Piece

PATIENCE_S = 10.0
"""How long a result waits for output that was sent before it, in seconds."""

REMEMBERED = 10_000
"""Of how many jobs it is known how much of their output was printed."""


class News:
    """Prints what the board hears, in a daemon thread that ends with the board."""

    def __init__(self, board: Any) -> None:
        self._board = board
        self._printed: OrderedDict[str, int] = OrderedDict()
        self._changed = threading.Condition()
        self._open = True
        threading.Thread(target=self._listen, name="treadle-news", daemon=True).start()

    def await_lots(self, job_id: str, lots: int) -> None:
        """Return when so many lots of the job were printed, or when they do not come."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open or self._printed.get(job_id, 0) >= lots, PATIENCE_S)

    def close(self) -> None:
        """Ask no more."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _listen(self) -> None:
        seen = 0
        try:
            while self._open and ray.is_initialized():  # a call of Ray would start a cluster else
                lots: list[Lot]
                seen, lots = ray.get(self._board.news.remote(seen))
                for lot in lots:
                    self._print(lot)
        except Exception:  # noqa: BLE001 - the board has ended, or the connection has: so does this
            self.close()

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
