"""The slot of a job that runs in another process, given up and taken back as messages come."""

from __future__ import annotations

import threading
from collections.abc import Callable

from treadle.fray.slots import Slots


class _Turn(threading.Event):
    """A wait for a slot that tells somebody when it is over."""

    def __init__(self, tell: Callable[[], object]) -> None:
        super().__init__()
        self._tell = tell

    def set(self) -> None:
        """The slot is there."""
        super().set()
        self._tell()


class Place:
    """One slot. For one thread, which never waits here but in `end`.

    `tell` is called, from any thread, when a slot that was waited for is there; call `settle` then. It must
    not touch the slots.
    """

    __slots__ = ("_slots", "_tell", "_turn", "_wanted")

    def __init__(self, slots: Slots, tell: Callable[[], object]) -> None:
        self._slots = slots
        self._tell = tell
        self._wanted = True
        self._turn: _Turn | None = None  # not None while it waits for a slot

    def park(self) -> None:
        """The slot goes to who needs it."""
        self._wanted = False
        if self._turn is None:
            self._slots.give_up()

    def unpark(self) -> bool:
        """Whether the slot is there at once; else wait for `tell`."""
        self._wanted = True
        if self._turn is None:
            self._turn = _Turn(self._tell)
            self._slots.take_back_when(self._turn)
        return self.settle()

    def settle(self) -> bool:
        """Whether the slot that was waited for is there, and wanted; one that is not is given up again."""
        if self._turn is None or not self._turn.is_set():
            return False
        self._turn = None
        if not self._wanted:
            self._slots.give_up()
        return self._wanted

    def end(self) -> None:
        """Have the slot, so that it can be handed on."""
        if self._turn is not None:
            self._turn.wait()
            self._turn = None
        elif not self._wanted:
            self._slots.take_back()
