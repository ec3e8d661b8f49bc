"""What a worker is told when it is started, as one argument of its command line."""

from __future__ import annotations

from typing import NamedTuple, Self


class Start(NamedTuple):
    """`driver` is a process id. `socket` is the worker's end of the channel; `out` and `err` are the driver's
    ends of its output.

    The worker keeps those open and empties them when the driver is gone, so that printing never fails.
    """

    driver: int
    socket: int
    out: int
    err: int
    client_key: str
    grace: float
    largest_result: int

    @property
    def fds(self) -> tuple[int, int, int]:
        """The file descriptors among them."""
        return self.socket, self.out, self.err

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`."""
        driver, end, out, err, key, grace, largest = text.split(",")
        return cls(int(driver), int(end), int(out), int(err), key, float(grace), int(largest))

    def __str__(self) -> str:
        return ",".join(str(each) for each in tuple(self))
