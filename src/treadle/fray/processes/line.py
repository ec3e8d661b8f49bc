"""The worker's end of its channel: one thread reads, all others send."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from queue import SimpleQueue
from typing import Any, Protocol
from weakref import WeakValueDictionary

from treadle.errors import ClusterError
from treadle.fray.parcel import open_outcome
from treadle.fray.processes.channel import Channel, Data, Kind, Message
from treadle.fray.processes.hearing import Hearing
from treadle.fray.running_job import announce_stop


class Here(Protocol):
    """The job that runs here, as far as messages concern it."""

    terminated: bool
    number: int

    def wait_for_end(self, timeout: float) -> bool:
        """Whether the body has ended within so many seconds."""
        ...

    def place_is_back(self) -> None:
        """The driver has given the place back, or nobody ever will."""
        ...


class Child(Protocol):
    """The handle of a job that was submitted from here."""

    def ended(self, outcome: Data) -> None:
        """Take note of the end; the first byte says whether it was stopped."""
        ...

    def lost(self, error: Exception) -> None:
        """Nobody will ever tell how it ended."""
        ...


class Line:
    """What goes to the driver, a process of that id, and comes from it.

    When the driver is gone, everything that waits for it fails.
    """

    def __init__(self, channel: Channel, driver: int) -> None:
        self._channel = channel
        self._hearing = Hearing(channel, self._take, driver)
        self._sending = threading.Lock()
        self._beginning = threading.Lock()
        self._asked: dict[int, Future[Data]] = {}
        self._numbers = count(1)
        self._forgotten: deque[int] = deque()
        self.children: WeakValueDictionary[int, Child] = WeakValueDictionary()
        self.held: set[Child] = set()
        """Children that are to be told of their end though nobody holds them."""
        self.here: Here | None = None
        self.gone = False
        self._calling: SimpleQueue[Callable[[], object]] | None = None

    def begin(self, job: Here) -> bool:
        """A job begins here; False when the driver was gone before it did."""
        with self._beginning:
            self.here = None if self.gone else job
            return not self.gone

    def new_number(self) -> int:
        """A number for a question or a child."""
        return next(self._numbers)

    def forget(self, child: int) -> None:
        """Nobody here holds the handle any more. From finalisers: nothing is sent before the next message."""
        self._forgotten.append(child)

    def send(self, kind: Kind, number: int, data: Data = b"") -> None:
        """Send a message; nothing is done when the driver is gone."""
        with self._sending:
            try:
                while self._forgotten:
                    self._channel.send(Kind.FORGET, self._forgotten.popleft())
                self._channel.send(kind, number, data)
            except OSError:  # the reading thread sees the end, too, and acts
                self.gone = True

    def tell(self, verb: str, *args: object) -> None:
        """Have the driver do something; there is no answer."""
        self.send(Kind.TELL, 0, pickle.dumps((verb, args)))

    def ask(self, verb: str, *args: object) -> Any:
        """Have the driver do something, and wait for what it gives or raises.

        Raises:
            ClusterError: the driver is gone.
        """
        number, answer = self.new_number(), Future[Data]()
        self._asked[number] = answer
        try:
            self.send(Kind.ASK, number, pickle.dumps((verb, args)))
            if self.gone:
                raise self.lost()
            return open_outcome(answer.result())
        finally:
            self._asked.pop(number, None)

    def lost(self) -> ClusterError:
        """The error of what needs the driver when there is none."""
        return ClusterError(
            "the process that this job was submitted from is gone; nobody runs other jobs here"
        )

    @property
    def is_cut(self) -> bool:
        """Whether it ended at the driver's end, and not at that of this process."""
        return isinstance(self._hearing.lost_by, EOFError | ConnectionError)

    def next_call(self) -> Message | None:
        """In the main thread: the next call; None when the driver is gone."""
        return self._hearing.next_call()

    def listen(self) -> None:
        """In the reading thread: take messages until the driver is gone."""
        self._hearing.listen()
        with self._beginning:
            self.gone = True
        if (here := self.here) is not None:
            here.place_is_back()
        self._fail_all()

    def cut(self) -> None:
        """In the child of a fork: the line is the parent's."""
        self.gone = True
        self._sending = threading.Lock()
        self._channel.close()

    def call_back(self, callback: Callable[[], object]) -> None:
        """Call it in a thread of its own: a callback may hand over a job, and wait for the answer."""
        with self._beginning:
            if self._calling is None:
                self._calling = SimpleQueue()
                threading.Thread(
                    target=_call, args=(self._calling,), name="treadle-ends", daemon=True
                ).start()
        self._calling.put(callback)

    def _take(self, message: Message) -> None:
        kind, number, data = message
        if kind == Kind.REPLY:
            if (answer := self._asked.get(number)) is not None:
                answer.set_result(data)
        elif kind == Kind.ENDED:
            if (child := self.children.get(number)) is not None:
                child.ended(data)
        else:
            self._take_for_job(kind, number)

    def _take_for_job(self, kind: int, number: int) -> None:
        here = self.here
        if here is None or here.number != number:
            return  # it came too late
        if kind == Kind.STOP:
            here.terminated = True
            announce_stop()
        elif kind == Kind.RESUMED:
            here.place_is_back()

    def _fail_all(self) -> None:
        for answer in tuple(self._asked.values()):
            answer.set_exception(self.lost())
        for reference in self.children.valuerefs():
            if (child := reference()) is not None:
                child.lost(self.lost())


def _call(callbacks: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        callbacks.get()()
