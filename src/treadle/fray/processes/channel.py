"""Messages over a socket between the driver and one worker.

A message is a kind, a number that says what it is about, and bytes. The driver's end never blocks: what the
socket does not take at once is kept until it is writable. The worker's end blocks until all is sent.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from enum import IntEnum
from typing import NamedTuple, TypeAlias

Data: TypeAlias = bytes | bytearray

_HEAD = struct.Struct("<BQQ")  # kind, number, how many bytes follow
_CHUNK = 1 << 16


class Kind(IntEnum):
    """What a message says. The number is that of the job, but for the last five."""

    READY = 0  # worker: it is up
    CALL = 1  # driver: carry this packed call out
    STOP = 2  # driver: the job is asked to stop
    OUTCOME = 3  # worker: what came of the call
    PARK = 4  # worker: the job gives its place up
    UNPARK = 5  # worker: the job wants its place back
    RESUMED = 6  # driver: it has its place back
    TERMINATE = 7  # worker: the job asks itself to stop
    DETACH = 8  # driver: the next call is to be carried out to its end, whatever becomes of the driver
    ASK = 9  # worker: a question, numbered by the worker
    REPLY = 10  # driver: the answer to the question of that number
    TELL = 11  # worker: a question without an answer
    ENDED = 12  # driver: the child of that number has ended
    FORGET = 13  # worker: nobody here holds the handle of the child of that number


class Message(NamedTuple):
    """One message."""

    kind: int
    number: int
    data: Data


class Channel:
    """One end of a socket pair. Each of `send` and `receive` is for one thread at a time."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._unsent: deque[memoryview] = deque()
        self._rest = b""
        self._emptied = False
        # The message that is too long for one read, and how much of it is there.
        self._long: tuple[int, int, bytearray] | None = None
        self._filled = 0

    @property
    def is_empty(self) -> bool:
        """Whether all that had arrived was received."""
        return self._emptied

    @property
    def has_unsent(self) -> bool:
        """Whether the socket has not taken all yet; call `flush` when it is writable."""
        return bool(self._unsent)

    def fileno(self) -> int:
        """The file descriptor of the socket."""
        return self._socket.fileno()

    def send(self, kind: int, number: int, data: Data = b"") -> None:
        """Send a message, or as much of it as the socket takes when it does not block.

        Raises:
            OSError: nobody is at the other end.
        """
        head = _HEAD.pack(kind, number, len(data))
        if len(data) < _CHUNK:
            self._unsent.append(memoryview(head + data))
        else:
            self._unsent += (memoryview(head), memoryview(data))
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes; see `send`."""
        try:
            while self._unsent:
                self._sent(self._socket.send(self._unsent[0]))
        except BlockingIOError:
            pass  # the rest goes when the socket is writable

    def receive(self) -> list[Message] | None:
        """The messages that have arrived whole by now; None when nothing has arrived. Never blocks.

        Raises:
            EOFError: the other end was closed.
            OSError: the connection was lost.
        """
        try:
            return self._received() if self._long is None else self._received_long(*self._long)
        except BlockingIOError:
            return None

    def end(self) -> None:
        """Both ends see the end, whoever holds this one open; from any thread."""
        with contextlib.suppress(OSError):  # it was closed or lost before
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end; the other one sees it."""
        self._unsent.clear()
        self._long = None
        self._socket.close()

    def _sent(self, count: int) -> None:
        part = self._unsent[0]
        if count < len(part):
            self._unsent[0] = part[count:]
        else:
            self._unsent.popleft()

    def _received(self) -> list[Message]:
        data = self._rest + self._read()
        found, start = [], 0
        while len(data) - start >= _HEAD.size:
            kind, number, length = _HEAD.unpack_from(data, start)
            begin, end = start + _HEAD.size, start + _HEAD.size + length
            if end > len(data):
                if length > _CHUNK:
                    self._begin_long(kind, number, length, data[begin:])
                    start = len(data)
                break
            found.append(Message(kind, number, data[begin:end]))
            start = end
        self._rest = data[start:]
        return found

    def _read(self) -> bytes:
        data = self._socket.recv(_CHUNK, socket.MSG_DONTWAIT)
        if not data:
            raise EOFError("the other end was closed")
        self._emptied = len(data) < _CHUNK
        return data

    def _begin_long(self, kind: int, number: int, length: int, begun: bytes) -> None:
        whole = bytearray(length)
        whole[: len(begun)] = begun
        self._long, self._filled = (kind, number, whole), len(begun)

    def _received_long(self, kind: int, number: int, whole: bytearray) -> list[Message]:
        count = self._socket.recv_into(memoryview(whole)[self._filled :], 0, socket.MSG_DONTWAIT)
        if not count:
            raise EOFError("the other end was closed")
        self._filled += count
        self._emptied = self._filled < len(whole)
        if self._filled < len(whole):
            return []
        self._long = None
        return [Message(kind, number, whole)]
