"""StepRunner: brings the steps of a graph to their ends, each at most once.

1. gather the steps and all that they need, and check them (`graph.py`)
2. look which of them are done (`freshness.py`)
3. hand ready steps to the client, at most `max_concurrent` at a time, longest remaining path first
4. when one ends, go on with what is ready now; when one fails, skip what depends on it
5. give the results, or raise one error that names each failed and each skipped step
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from treadle.errors import ArgumentError
from treadle.execution.drive import Drive
from treadle.execution.freshness import look
from treadle.execution.graph import gather
from treadle.execution.report import Reporter, log_event
from treadle.execution.results import Results, as_error
from treadle.execution.step_spec import StepSpec
from treadle.execution.watch import watch
from treadle.fray import Client, ThreadClient, current_client, has_current_client
from treadle.kernel import Failed

OnFailure: TypeAlias = Literal["continue", "stop"]


class StepRunner:
    """Runs steps in the order of their dependencies.

    At most `max_concurrent` step functions run at once, on `fray_client`; without one, on the current
    client if there is one, else on threads of its own. They run under the context variables of
    whoever called `run`. `reporter` is called with every event; by default events are logged.

    Raises:
        ArgumentError: `max_concurrent` is no whole number of at least 1.
    """

    def __init__(
        self,
        max_concurrent: int = 8,
        fray_client: Client | None = None,
        *,
        reporter: Reporter | None = None,
    ) -> None:
        if type(max_concurrent) is not int or max_concurrent < 1:
            raise ArgumentError(
                f"max_concurrent: expected a whole number of at least 1, got {max_concurrent!r}"
            )
        self.max_concurrent = max_concurrent
        self.fray_client = fray_client
        self.reporter = reporter or log_event

    def run(
        self, steps: Iterable[StepSpec], *, force: Iterable[str] = (), on_failure: OnFailure = "continue"
    ) -> Results:
        """Run these steps and what they need, except what is done (see `freshness`).

        `force` names steps, by name or id, that run though they are done, and what depends on them
        with them. When a step fails, what depends on it is skipped; with `on_failure="stop"`
        nothing new is started at all.

        Raises:
            UsageError: the steps or the options are wrong; nothing has run.
            ArtifactError: a record cannot be read; nothing has run.
            StepsFailedError: steps failed; raised when all others have ended, with `results`.
            KeyboardInterrupt: Ctrl-C; running steps were asked to stop and have ended.
        """
        if on_failure not in ("continue", "stop"):
            raise ArgumentError(f"on_failure: expected 'continue' or 'stop', got {on_failure!r}")
        graph = gather(steps)
        forced = graph.find([force] if isinstance(force, str) else force)
        plan = look(graph, forced)
        with self._client() as client:
            drive = Drive(
                graph,
                plan,
                forced,
                client,
                max_concurrent=self.max_concurrent,
                stop_on_failure=on_failure == "stop",
            )
            outcomes = watch(drive.run, drive.halt, self.reporter)
        results = Results(outcomes)
        if any(isinstance(each.outcome, Failed) for each in outcomes.values()):
            raise as_error(results)
        return results

    @contextmanager
    def _client(self) -> Iterator[Client]:
        if self.fray_client is not None:
            yield self.fray_client
        elif has_current_client():
            yield current_client()
        else:
            own = ThreadClient(self.max_concurrent)
            try:
                yield own
            finally:
                own.shutdown(wait=False)  # its jobs have ended, unless Ctrl-C came twice
