"""Run the steps of an experiment, show how it goes, and say what to look at next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.errors import StepError, StepsFailedError
from treadle.execution import Results
from treadle.experiment import run
from treadle.fray import Client, FrayClient
from treadle.integrations.cli.console import command, say, told_when_stopped
from treadle.integrations.cli.lookup import named
from treadle.integrations.cli.options import Running, load
from treadle.integrations.cli.plan import plan
from treadle.integrations.progress.display import Progress
from treadle.kernel import Failed

_NAMED = 3


def run_experiment(target: str, options: Running) -> None:
    """Run it; with `dry_run` show its plan."""
    if options.dry_run:
        plan(target, options=options)
        return
    arguments = options.planning()
    steps = load(target, options.store)
    # Only now, when the experiment is loaded: other processes look for its modules where this one does.
    with (
        told_when_stopped(
            lambda: f"what is done is kept; to go on: {command('run', target, *options.words())}"
        ),
        _client(options.cluster) as client,
        Progress(max_concurrent=arguments["max_concurrent"]) as progress,
    ):
        try:
            results = run(
                *steps,
                fray_client=client,
                reporter=progress,
                on_failure=options.on_failure or "continue",
                **arguments,
            )
        except StepsFailedError as error:
            raise _failed(target, options, error) from error
    _tell_next(results)


@contextmanager
def _client(cluster: str | None) -> Iterator[Client | None]:
    if cluster is None:
        yield None
        return
    client = FrayClient(cluster)
    try:
        yield client
    finally:
        client.shutdown(wait=False)  # its jobs have ended, unless Ctrl-C came twice


def _tell_next(results: Results) -> None:
    for key, last in list(results.outcomes.items())[-1:]:
        say(f"next: what a step gave and where it is: {command('show', key, store=named(last.prefix))}")


def _failed(target: str, options: Running, error: StepsFailedError) -> StepError:
    """The table above has named each step and its cause: here are the lines to paste."""
    results = error.results
    told = StepError(str(error).partition("\n")[0])
    if isinstance(results, Results):
        failed = [key for key, each in results.outcomes.items() if isinstance(each.outcome, Failed)]
        for key in failed[:_NAMED]:
            store = named(results.outcomes[key].prefix)
            told.add_note(f"the traceback, and what it printed: {command('logs', key, store=store)}")
        if (more := len(failed) - _NAMED) > 0:
            store = named(results.outcomes[failed[0]].prefix)
            told.add_note(f"{more:,} more failed: {command('ls', '--failed', store=store)}")
        if failed:
            told.add_note(f"why it ran: {command('why', target, failed[0], *options.lowering().words())}")
        told.add_note(f"to try again: {command('run', target, *options.words())}")
    return told
