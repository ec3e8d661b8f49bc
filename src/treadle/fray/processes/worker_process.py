"""One worker as the driver sees it: a process, its channel, its output, and how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
from contextlib import ExitStack

from treadle.fray.processes.channel import Channel
from treadle.fray.processes.launch import (
    exit_code,
    in_words,
    opened_pidfd,
    opened_pipe,
    standard_fds_kept,
    started,
)
from treadle.fray.processes.setting import Setting, WorkerOptions
from treadle.fray.processes.start import Start
from treadle.fray.processes.watch import Watch


class WorkerProcess:
    """A running worker. For one thread at a time, but for `wake` and `kill`.

    It leads a process group, so that a signal to the driver's does not reach it, and so that what it has
    started can be ended with it.

    Raises:
        OSError: the process could not be started.
    """

    def __init__(self, setting: Setting, options: WorkerOptions) -> None:
        self.setting = setting
        self.grace = options.grace
        self.ready = False
        self.detached = False
        self.jobs = 0
        self.had_detached = False
        """Whether a detached job has run there: what that has started is its own business."""
        self._closing = threading.Lock()
        self._closed = False
        with ExitStack() as undo, standard_fds_kept():
            self._open(undo, options)
            self._kept = undo.pop_all()

    def _open(self, undo: ExitStack, options: WorkerOptions) -> None:
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        with ExitStack() as theirs_alone:
            theirs_alone.callback(theirs.close)
            self.out, out = opened_pipe(undo, theirs_alone)
            self.err, err = opened_pipe(undo, theirs_alone)
            start = Start(
                driver=os.getpid(),
                socket=theirs.fileno(),
                out=self.out,
                err=self.err,
                client_key=options.client_key,
                grace=options.grace,
                largest_result=options.largest_result,
            )
            self._process = started(self.setting, start, out, err)
        self.channel = Channel(ours)
        ours.setblocking(False)
        self._waking, self._wake = opened_pipe(undo, undo)
        self.ended = opened_pidfd(self._process.pid, undo)
        for fd in (self.out, self.err, self._waking, self._wake):
            os.set_blocking(fd, False)
        self._watch = Watch(self.channel, (self.out, self.err, self._waking, self.ended))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def poll(self, timeout: float | None) -> list[int]:
        """The file descriptors at which something has happened; waits so many seconds, None for ever."""
        return self._watch.poll(timeout)

    def is_fit(self) -> bool:
        """Of an idle one: whether it is still there. What was printed meanwhile is thrown away."""
        while fds := self.poll(0):
            if self.channel.fileno() in fds or self.ended in fds:
                return False
            for fd in fds:
                self.read(fd)
        return True

    def wake(self) -> None:
        """Have `poll` return; from any thread, at any time."""
        with self._closing:
            if not self._closed:
                with contextlib.suppress(BlockingIOError):  # it is full of wakes
                    os.write(self._wake, b"!")

    def woken(self) -> None:
        """Take the wakes away."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._waking, 4096)

    def read(self, fd: int) -> bytes:
        """What is there of the output; empty when nothing is."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return b""
        if not data:  # everybody has closed it
            self._watch.drop(fd)
        return data

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the job."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it and all that it has started."""
        with self._closing:
            if self._process.returncode is None:  # not reaped, so the number is still its own
                self._kill()

    def _kill(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not come so far as to lead a group
            self._process.kill()

    def hang_up(self) -> None:
        """Have it end by itself, once it has nothing to do."""
        self.channel.close()

    def abandon(self) -> None:
        """Have it end at once, whatever it does; from any thread."""
        self.channel.end()

    def see_off(self, patience: float) -> None:
        """Wait until it has ended, and kill it when that takes long; from any thread, at any time."""
        with self._closing:  # nobody else closes or reaps it meanwhile
            if not self._closed and not self.exited(patience):
                self._kill()

    def exited(self, timeout: float) -> bool:
        """Whether it has ended within so many seconds. It keeps its process id until `end`."""
        if self.ended >= 0:
            waiting = select.poll()
            waiting.register(self.ended, select.POLLIN)
            return bool(waiting.poll(timeout * 1000))
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def was_killed(self) -> bool:
        """Of one that has exited: whether a signal ended it."""
        code = exit_code(self._process)
        return code is not None and code < 0

    def end(self, *, patience: float = 0.0, group: bool = True) -> str:
        """See it ended, and say how; killed when it takes more than `patience` seconds.

        What it has started goes with it, unless `group` is false.
        """
        late = not self.exited(patience)
        if group:
            self.kill()
        elif late:
            self._process.kill()
        with self._closing:
            code = exit_code(self._process)
            self._process.wait()
            self._closed = True
            self.channel.close()
            self._kept.close()
        return in_words(code)

    def forget(self) -> None:
        """In the child of a fork: the worker is the parent's."""
        self._closing = threading.Lock()
        self._closed = True
        self._process.returncode = 0
        self._kept.close()
