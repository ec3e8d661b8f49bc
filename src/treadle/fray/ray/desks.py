"""The desks of a client: one for jobs that end with it, and one for those that outlive it."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Protocol

import ray

from treadle.fray.ray.desk import ClientDesk


class NewDesk(Protocol):
    """Makes a desk; see `ClientDesk`."""

    def __call__(self, *, node_id: str = "", anchor: object = None) -> ClientDesk:
        """The desk."""
        ...


class Desks:
    """`main` is for the jobs that end with the client; the other one is made for the first that does not."""

    def __init__(self, new_desk: NewDesk) -> None:
        self._new_desk = new_desk
        self.main = new_desk(node_id=ray.get_runtime_context().get_node_id())
        self._keeper: ClientDesk | None = None

    def keeper(self) -> ClientDesk:
        """The desk of the jobs that outlive the client."""
        if self._keeper is None:
            self._keeper = self._new_desk(anchor=self.main.board)
        return self._keeper

    def await_orphans(self) -> None:
        """Block until the jobs have ended whose handles nobody holds."""
        for desk in self._all():
            wait(tuple(desk.orphans))

    def abandon_orphans(self) -> None:
        """Wait for these no more; those of this process end with its connection."""
        for desk in self._all():
            desk.orphans.clear()

    def close(self) -> None:
        """The client has ended."""
        for desk in self._all():
            desk.close()

    def _all(self) -> tuple[ClientDesk, ...]:
        return (self.main,) if self._keeper is None else (self.main, self._keeper)
