"""Waits for whatever comes from a worker: its messages, its output, its end, and wakes of other threads."""

from __future__ import annotations

import select
from collections.abc import Iterable
from contextlib import suppress

from treadle.fray.processes.channel import Channel


class Watch:
    """Over the channel and the file descriptors; one of -1 is none. For one thread at a time."""

    def __init__(self, channel: Channel, fds: Iterable[int]) -> None:
        self._channel = channel
        self._poll = select.poll()
        for fd in (channel.fileno(), *fds):
            if fd >= 0:
                self._poll.register(fd, select.POLLIN)

    def poll(self, timeout: float | None) -> list[int]:
        """Where something has happened; waits so many seconds, None for ever.

        That of the channel is there, too, when what it has unsent can go on.
        """
        patience = None if timeout is None else max(0.0, timeout) * 1000
        if not self._channel.has_unsent:
            return [fd for fd, _ in self._poll.poll(patience)]
        self._poll.modify(self._channel.fileno(), select.POLLIN | select.POLLOUT)
        try:
            return [fd for fd, _ in self._poll.poll(patience)]
        finally:
            self._poll.modify(self._channel.fileno(), select.POLLIN)

    def drop(self, fd: int) -> None:
        """Nothing will come from there any more."""
        with suppress(KeyError):  # it was dropped before
            self._poll.unregister(fd)
