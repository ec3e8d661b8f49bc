"""Sees when the cluster is gone: Ray itself waits for a minute, and then ends the process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from selectors import EVENT_READ, DefaultSelector

TRIES, PAUSE_S = 3, 1.0
"""So often, with a pause in seconds between, a server that hung up is called again before it is given up."""


class Watch:
    """Holds a line open to the cluster's head and to Ray's process on this machine, in a daemon thread.

    A server that ends hangs up, so nothing is polled. `lost(what)` is called once, in that thread.
    """

    def __init__(self, address: str, raylet: str, lost: Callable[[str], object]) -> None:
        self._lost = lost
        self._calls: dict[str, Callable[[], socket.socket]] = {
            f"the head of the cluster at {address}": lambda: _call_head(address),
            "Ray's process on this machine": lambda: _call_raylet(raylet),
        }
        self._end, self._ended = socket.socketpair()
        threading.Thread(target=self._run, name="treadle-watch", daemon=True).start()

    def close(self) -> None:
        """Watch no more."""
        self._end.close()

    def _run(self) -> None:
        with DefaultSelector() as selector:
            selector.register(self._ended, EVENT_READ, "")
            try:
                if all(self._hold(selector, what) for what in self._calls):
                    self._listen(selector)
            finally:
                for key in tuple(selector.get_map().values()):
                    _close(key.fileobj)

    def _listen(self, selector: DefaultSelector) -> None:
        while all(self._heard(selector, key.fileobj, key.data) for key, _ in selector.select()):
            pass

    def _heard(self, selector: DefaultSelector, line: object, what: str) -> bool:
        """Whether to go on."""
        if not what or not isinstance(line, socket.socket):
            return False
        if _talks(line):
            return True
        selector.unregister(line)
        line.close()
        return self._hold(selector, what)

    def _hold(self, selector: DefaultSelector, what: str) -> bool:
        for tries in range(TRIES):
            try:
                selector.register(self._calls[what](), EVENT_READ, what)
            except OSError as error:
                if tries == TRIES - 1:
                    self._lost(f"{what} does not answer any more: {error}")
                else:
                    time.sleep(PAUSE_S)  # it may be on its way back
            else:
                return True
        return False


def _close(line: object) -> None:
    if isinstance(line, socket.socket):
        line.close()


def _talks(line: socket.socket) -> bool:
    try:
        return bool(line.recv(4096))
    except OSError:
        return False


def _call_head(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    line = socket.create_connection((host.strip("[]"), int(port)), timeout=5)
    line.settimeout(None)
    return line


def _call_raylet(path: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(path)
    except OSError:
        line.close()
        raise
    return line
