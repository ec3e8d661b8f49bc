"""What goes with a job to its worker and back, and what a board is told: small records that pickle fast."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Self

from treadle.fray.environment import EnvironmentConfig

NAMESPACE: Final = "treadle"
"""The Ray namespace of all named actors of treadle."""

Stream = Literal["stdout", "stderr"]
Piece = tuple[Stream, bytes]
"""Output of a job: of which stream, and what."""


class Ticket(NamedTuple):
    """One try at a job. `ancestors` are the jobs that it descends from, the nearest first.

    `lane` is empty for a job that one task alone carries out; else several tasks may come with the same job,
    each with a lane of its own, and the first one to claim it carries it out. Ray lends the processor of a
    task that waits for another one, if it `owns_cpu`.
    """

    job_id: str
    board: str
    ancestors: tuple[str, ...]
    working_dir: str | None = None
    lane: str = ""
    owns_cpu: bool = True

    def packed(self) -> bytes:
        """As bytes, which Ray passes on as they are."""
        return pickle.dumps(tuple(self), pickle.HIGHEST_PROTOCOL)

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """The ticket that was packed."""
        return cls(*pickle.loads(data))  # noqa: S301 - from a process of this cluster


class Opening(NamedTuple):
    """An actor that is to be made: the options of its host, the packed call of `make`, and its ticket.

    When it is lost it is made again, up to `losses` times.
    """

    options: dict[str, Any]
    make: Any
    ticket: Ticket
    losses: int


class Fate(NamedTuple):
    """What has become of an actor: how often it was made and may be lost, and whether it was stopped."""

    made: int = 0
    losses: int = 0
    stopped: bool = False


class Call(NamedTuple):
    """Calls a method of the object that is given."""

    method: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def __call__(self) -> Any:
        """Call it on the object of the actor of this process."""
        return getattr(hosted[0], self.method)(*self.args, **self.kwargs)


class Make(NamedTuple):
    """Makes the object of the actor of this process."""

    make: Callable[[], Any]

    def __call__(self) -> None:
        """Make it."""
        hosted[:] = [self.make()]


hosted: list[Any] = []
"""The object of the actor of this process: Ray has at most one in each."""


class Outcome(NamedTuple):
    """What came of a try: the packed outcome, and how many lots of its output went to the board.

    `packed` is None when another task has claimed the job. `stopped`: the job, or one above it, was asked to
    stop, and it has not returned. Of a job that has printed nothing and was not stopped the packed outcome
    alone is sent, since Ray passes bytes on as they are.
    """

    packed: bytes | None
    lots: int = 0
    stopped: bool = False


class Start(NamedTuple):
    """A try has begun: in which process of which node, and where its output goes from which place on."""

    job_id: str
    pid: int
    node_id: str
    output: tuple[tuple[Stream, str, int], ...]


class Lot(NamedTuple):
    """Output of a job, `number` counts from 1; `reached` is how far each stream was read."""

    job_id: str
    number: int
    pieces: tuple[Piece, ...]
    reached: tuple[tuple[Stream, str, int], ...]


class Welcome(NamedTuple):
    """What a worker is told when it comes to a board: what is the same for all jobs of a client.

    `here` says that all its workers are on the machine of the client; `grace` is as `RayClient` has it.
    """

    sys_path: tuple[str, ...]
    largest: int
    environment: EnvironmentConfig
    here: bool
    grace: float


class Order(NamedTuple):
    """What jobs are told: to stop, or to be interrupted."""

    job_id: str
    interrupt: bool
