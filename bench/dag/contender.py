"""A contender: something that can run a graph, and what has to be known to compare it fairly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.dag.graphs import Needs


@contextmanager
def no_service(_: Path) -> Iterator[None]:
    """Most contenders need nothing but a call."""
    yield


@dataclass(frozen=True)
class Contender:
    """`run(needs, store)` brings the graph to its end and keeps what it keeps in the folder `store`.

    What `service(folder)` starts is not part of the time. `package` is the distribution whose version is
    told; None is the standard library. `warm` says whether a second run can use what the first one kept,
    `counts` whether the bodies run in this process, `slow` whether it gets the small graphs unless all is
    asked for, `cannot` why it is not given a graph. Modules import their package when they run, so that all
    can be listed where none is installed.
    """

    name: str
    package: str | None
    keeps: str
    settings: str
    run: Callable[[Needs, Path], object]
    warm: bool = True
    counts: bool = True
    slow: bool = False
    cannot: Mapping[str, str] = field(default_factory=dict)
    service: Callable[[Path], AbstractContextManager[object]] = no_service

    @property
    def is_peer(self) -> bool:
        """Whether it lives in the environment of the peers."""
        return self.package not in (None, "treadle")
