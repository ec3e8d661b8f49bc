"""Who reads what comes to a worker: the main thread while it has nothing to do, else the reading thread.

A call that the main thread reads by itself is begun at once; to be handed it by another thread would cost as
much again as the rest of the way. While a job runs, somebody has to hear that it is to stop.

Both threads wait for the socket, each by an epoll of its own, of which one only is woken: the first that
somebody waits at, and that of the main thread is the first. Where there is no epoll both are woken, and the
later one finds nothing.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from treadle.fray.processes.channel import Channel, Kind, Message


class _Ears(Protocol):
    def poll(self) -> Sequence[tuple[int, int]]: ...


class Hearing:
    """Takes messages from the channel: calls are kept for the main thread, others go to `take`."""

    def __init__(self, channel: Channel, take: Callable[[Message], None], driver: int) -> None:
        self._channel = channel
        self._take = take
        self._reading = threading.Lock()
        self._calls: deque[Message] = deque()
        self._idle = False
        self.lost_by: Exception | None = None
        """What told that nothing comes any more."""
        self._woken, self._wake = os.pipe()
        # A child that the driver forked while this process was started holds the other end of the channel,
        # too. Then only the driver's own end tells that it is gone.
        self._driver = os.pidfd_open(driver) if hasattr(os, "pidfd_open") else -1
        ends = (self._driver,) if self._driver >= 0 else ()
        self._first = _ears(channel.fileno(), self._woken, *ends)
        self._second = _ears(channel.fileno(), *ends)

    def next_call(self) -> Message | None:
        """In the main thread: the next call; waits for it. None when the driver is gone."""
        while not self._calls:
            self._idle = True  # before the look at the calls: whoever adds one looks at this afterwards
            ready = [] if self._calls else self._first.poll()
            self._idle = False
            if any(fd == self._woken for fd, _ in ready):
                os.read(self._woken, 4096)
            try:
                self._hear(ready)
            except (EOFError, OSError) as error:
                self.lost_by = error
                return None
        return self._calls.popleft()

    def listen(self) -> None:
        """In the reading thread: take messages until the driver is gone."""
        try:
            while True:
                self._hear(self._second.poll())
                if self._calls and self._idle:
                    os.write(self._wake, b"!")
        except (EOFError, OSError) as error:
            self.lost_by = error

    def _hear(self, ready: Sequence[tuple[int, int]]) -> None:
        # All that is there: what is left would wake nobody again.
        with self._reading:
            while (messages := self._channel.receive()) is not None:
                for message in messages:
                    if message.kind in (Kind.CALL, Kind.DETACH):
                        self._calls.append(message)
                    else:
                        self._take(message)
                if self._channel.is_empty:
                    break
        if any(fd == self._driver for fd, _ in ready):
            raise EOFError("the driver has ended")


def _ears(socket: int, *others: int) -> _Ears:
    if not hasattr(select, "EPOLLEXCLUSIVE"):
        waiting = select.poll()
        for fd in (socket, *others):
            waiting.register(fd, select.POLLIN)
        return waiting
    epoll = select.epoll()
    epoll.register(socket, select.EPOLLIN | select.EPOLLEXCLUSIVE)
    for fd in others:
        epoll.register(fd, select.EPOLLIN)
    return epoll
