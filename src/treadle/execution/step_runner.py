"""StepRunner: brings the steps of a graph to their ends, each at most once.

1. gather the steps and all that they need, and check them (`graph.py`)
2. look which of them are done, and why the others are not (`freshness.py`)
3. hand ready steps to the client, longest remaining path first (`drive.py`)
4. carry one out: claim, run, commit (`execute.py`)
5. when one ends, go on with what is ready now; when one fails, try it again or skip what depends on it
6. give the results, or raise one error that names each failed and each skipped step
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from treadle.errors import ArgumentError
from treadle.execution.capacity import capacity
from treadle.execution.freshness import OnDrift, look
from treadle.execution.graph import StepGraph, gather
from treadle.execution.plan import RunPlan, changed, lately_failed, plan_steps
from treadle.execution.report import Reporter, log_event
from treadle.execution.results import Results, as_error
from treadle.execution.running.capture import capture
from treadle.execution.running.drive import Drive, RunOptions
from treadle.execution.running.ends import results_there
from treadle.execution.running.ready import check_resources
from treadle.execution.running.sendable import check_sendable
from treadle.execution.running.watch import watch
from treadle.execution.select import select
from treadle.execution.step_checks import check_not_used_up
from treadle.execution.step_spec import StepSpec
from treadle.fray import Client, ThreadClient, check_count, current_client, has_current_client
from treadle.fray.default import default_cluster
from treadle.kernel import Failed

OnFailure: TypeAlias = Literal["continue", "stop"]
_OF_A_CLIENT = ("submit", "resources", "max_workers", "shares_memory")


class StepRunner:
    """Runs steps in the order of their dependencies.

    At most `max_concurrent` step functions run at once, and no more than the client has workers. The client
    is `fray_client`; without one, the current one if one is set or this is a job, else that of the cluster
    that `TREADLE_CLUSTER` or the settings name, else threads of its own. On threads they run under the
    context variables of whoever called `run`, elsewhere under the travelling ones. `reporter` is called with
    every event; by default events are logged.

    Raises:
        ArgumentError: `max_concurrent` is no whole number of at least 1, or `fray_client` is no client.
    """

    def __init__(
        self,
        max_concurrent: int = 8,
        fray_client: Client | None = None,
        *,
        reporter: Reporter | None = None,
    ) -> None:
        self.max_concurrent = check_count("max_concurrent", max_concurrent)
        self.fray_client = _checked_client(fray_client)
        self.reporter = reporter or log_event

    def run(
        self,
        steps: Iterable[StepSpec],
        *,
        force: Iterable[str] = (),
        select: Iterable[str] = (),
        on_failure: OnFailure = "continue",
        on_drift: OnDrift = "warn",
        dry_run: bool = False,
    ) -> Results:
        """Run these steps and what they need, except what is done (see `freshness`).

        `steps` are terminals or all steps, in any order. An iterator, such as a generator, is taken from as
        the run goes on, at most a few thousand steps ahead, so that it may be very long.

        `force` names steps, by name or id, that run though they are done, and what depends on them
        with them. `select` asks for some of the steps only (see `select.py`). When a step fails, what depends
        on it is skipped; with `on_failure="stop"` nothing new is started at all. `on_drift` says what becomes
        of a done step whose recipe or code has changed: it is served, in silence or with a warning, or built
        anew, or an error. A `dry_run` gives the results that are there, and runs nothing; `plan` says more.

        Raises:
            UsageError: the steps or the options are wrong; nothing has run.
            NotSendableError: a step cannot be sent to other processes, where `fray_client` runs it; nothing
                has run.
            ArtifactError: a record cannot be read; nothing has run.
            StepsFailedError: steps failed; raised when all others have ended, with `results`.
            KeyboardInterrupt: Ctrl-C; running steps were asked to stop and have ended.
        """
        check_not_used_up("steps", steps)
        _check_one_of("on_failure", on_failure, OnFailure)
        _check_one_of("on_drift", on_drift, OnDrift)
        with self._client() as client, capture():
            at_once = min(self.max_concurrent, client.max_workers)
            options = RunOptions(new_run_id(), at_once, on_failure == "stop", on_drift)
            drive = Drive(client, options)
            if isinstance(steps, Iterator):
                _check_plain_stream(force, select, dry_run)
                drive.begin_stream(steps)
            else:
                graph, forced = _asked_for(steps, force, select)
                plan = look(graph, forced, on_drift)
                if dry_run:
                    return results_there(graph, plan, self.reporter)
                if not client.shares_memory:
                    check_sendable(graph.steps[key] for key in plan.reasons)
                drive.begin(graph, plan)
            results = watch(drive.run, drive.halt, self.reporter)
        if results.counts.get(Failed):
            raise as_error(results)
        return results

    def plan(
        self,
        steps: Iterable[StepSpec],
        *,
        force: Iterable[str] = (),
        select: Iterable[str] = (),
        on_drift: OnDrift = "warn",
        cluster: str | None = None,
    ) -> RunPlan:
        """What `run` would do, without doing it; arguments and errors are those of `run`.

        `cluster` is the name of the one that it would run on, where there is no client; it is not started.
        """
        _check_one_of("on_drift", on_drift, OnDrift)
        graph, forced = _asked_for(steps, force, select)
        plan = look(graph, forced, on_drift)
        place = capacity(self.fray_client, cluster)
        if place.total is not None:
            check_resources([graph.steps[key] for key in plan.reasons], place.total)
        return plan_steps(graph, plan, min(self.max_concurrent, place.workers or self.max_concurrent))

    @contextmanager
    def _client(self) -> Iterator[Client]:
        if self.fray_client is not None:
            yield self.fray_client
        elif has_current_client() or default_cluster() != "local":
            yield current_client()
        else:
            own = ThreadClient(self.max_concurrent)
            try:
                yield own
            finally:
                own.shutdown(wait=False)  # its jobs have ended, unless Ctrl-C came twice


def _checked_client(client: Client | None) -> Client | None:
    if client is not None and not all(hasattr(client, each) for each in _OF_A_CLIENT):
        name = client if isinstance(client, str) else "processes"
        raise ArgumentError(
            f'fray_client: expected a client, such as treadle.fray.FrayClient("{name}"), got {client!r}'
        )
    return client


def new_run_id() -> str:
    """An id that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"


def _asked_for(
    steps: Iterable[StepSpec], force: Iterable[str], selected: Iterable[str]
) -> tuple[StepGraph, frozenset[str]]:
    """The graph with what is asked for as its targets, and the ids of the forced steps."""
    graph = gather(steps)
    forced = frozenset(graph.find(_texts("force", force)))
    expressions = _texts("select", selected)
    if not expressions:
        return graph, forced
    chosen = select(graph, expressions, failed=lately_failed(graph), changed=changed(graph))
    narrowed = graph.narrowed(chosen)
    if outside := sorted(forced - narrowed.steps.keys()):
        raise ArgumentError(
            f"force: expected steps of the selection, or that it needs, got {outside[0]}: select it as well"
        )
    return narrowed, forced


def _texts(option: str, given: object) -> list[str]:
    texts: list[str] = []
    for each in [given] if isinstance(given, str) or not isinstance(given, Iterable) else given:
        if not isinstance(each, str):
            raise ArgumentError(
                f"{option}: expected names or ids of steps, such as [handle.id], got {each!r}"
            )
        texts.append(each)
    return texts


def _check_one_of(name: str, value: object, known: object) -> None:
    if value not in get_args(known):
        expected = " or ".join(map(repr, get_args(known)))
        raise ArgumentError(f"{name}: expected {expected}, got {value!r}")


def _check_plain_stream(force: Iterable[str], chosen: Iterable[str], dry_run: bool) -> None:
    if list(force) or list(chosen) or dry_run:
        raise ArgumentError(
            "force, select and dry_run need all steps at once, and got an iterator: give them as list(steps)"
        )
