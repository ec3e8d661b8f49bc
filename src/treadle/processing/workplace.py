"""Where the units of a run are worked on: here, or on the workers of a client."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from treadle import fray
from treadle.extras import check_extra
from treadle.manifest.model import ParallelismSection
from treadle.settings import find_settings

if TYPE_CHECKING:
    from treadle.fray.client import ClientBlock


class Workplace:
    """The place that the section `parallelism` describes; as a `with` block it ends the client that it made.

    A run that is itself a job of other processes or of Ray gives its units to that same client, so that runs
    in runs share one set of workers. Otherwise a client is made when it is first asked for.
    """

    def __init__(self, section: ParallelismSection) -> None:
        self.section = section
        self._client: ClientBlock | None = None

    @property
    def is_here(self) -> bool:
        """Whether units are worked on in this process, one after the other."""
        return self.section.backend == "inprocess"

    @property
    def lanes(self) -> int:
        """How many units are worked on at once."""
        if self.is_here:
            return 1
        return self.section.workers or self.client().max_workers

    def client(self) -> fray.Client:
        """The client whose workers get the units.

        Raises:
            MissingExtraError: Ray is not installed.
            ClusterError: the cluster cannot be reached.
        """
        if self._client is not None:
            return self._client
        if fray.has_current_client() and not fray.current_client().shares_memory:
            return fray.current_client()
        self._client = open_client(self.section.backend, self.section.workers)
        return self._client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.__exit__(kind, error, trace)


def open_client(backend: str, workers: int | None) -> ClientBlock:
    """A client for that backend with so many workers; a table of that name in treadle.toml comes first."""
    if workers is None or backend in find_settings().section("clusters"):
        return fray.FrayClient(backend)
    if backend == "ray":
        check_extra("ray", "the Ray backend", "ray")
        from treadle.fray.ray import RayClient  # here: Ray is an extra

        return RayClient(max_workers=workers)
    from treadle.fray.processes import ProcessClient  # here: only who asks for processes loads them

    return ProcessClient(workers)
