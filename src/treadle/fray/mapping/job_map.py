"""`job_map`: one function over many units of work, on whatever client there is.

Where to look, in the order in which a unit goes through it:

1. `mapping/source.py` takes it from the caller's iterator, `mapping/queues.py` keeps it until its turn;
2. `mapping/scheduler.py` decides what runs next and what becomes of what is lost; `mapping/pace.py` how
   many go together, `mapping/shares.py` over how many lanes;
3. `mapping/dispatcher.py` submits it as part of a batch, which `mapping/packing.py` makes a job of;
4. `mapping/worker.py` calls the function, wherever the job runs;
5. `mapping/reorder.py` brings the results into the order of the units, `mapping/consumer.py` gives them out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Literal, TypeVar, cast

from treadle.errors import ArgumentError, UnknownNameError
from treadle.fray.checks import check_count
from treadle.fray.current import current_client
from treadle.fray.mapping.consumer import Consumer
from treadle.fray.mapping.dispatcher import Dispatcher
from treadle.fray.mapping.pace import Pace
from treadle.fray.mapping.packing import packing_for
from treadle.fray.mapping.queues import SharedQueue, deal
from treadle.fray.mapping.scheduler import Scheduler
from treadle.fray.mapping.shares import current_lane, divide
from treadle.fray.mapping.source import Source
from treadle.fray.mapping.tick import Tick, Ticker
from treadle.fray.protocol import Client, JobRequest
from treadle.fray.resources import ResourceConfig

__all__ = ["Tick", "current_lane", "job_map"]

U = TypeVar("U")
R = TypeVar("R")

_ONE_CPU = ResourceConfig()


def job_map(
    fn: Callable[[U], R],
    units: Iterable[U],
    *,
    client: Client | None = None,
    budget: int | None = None,
    assign: Literal["pull", "static"] = "pull",
    lanes: int | None = None,
    weigh: Callable[[U], float] | None = None,
    on_tick: Callable[[Tick], object] | None = None,
    kills: int = 3,
    resources: ResourceConfig = _ONE_CPU,
    name: str = "map",
    return_exceptions: bool = False,
    label: Callable[[U], str] | None = None,
) -> Generator[R, None, None]:
    """`fn(unit)` for each unit, in the order of the units, over the workers of `client` (the current one).

    Work begins at once. Units are taken from their iterator, in the calling thread, as results are asked for,
    and only so far ahead that the workers do not wait: a stream of any length takes bounded memory. Closing
    or dropping the iterator ends what runs.

    At most `lanes` units run at once (default: as many as the client has workers), in batches of some 30 ms.
    With `assign="pull"` a lane that is free takes the next ones. With `"static"` all units are listed first
    and dealt out to the lanes, in turn or evenly by `weigh(unit)`, the same way each time. `current_lane()`
    is the number of the lane.

    `budget` is how many workers this map and all that is nested in it use at once; a map inside a unit gets
    its part of it. A unit that waits for a map does not count.

    A unit that raises ends the map: results before it are given, then its error is raised in its place. With
    `return_exceptions` the error is given in place of the result, and the map goes on. What ends the map
    anyhow: an error of the iterator of units, a client that was shut down, a terminated job.

    The units whose worker was lost run again on another one, each alone; one that was alone with a worker
    when it died, `kills` times, is given up with a PoisonedUnitError. So a unit is called exactly once, but
    for those of a batch whose worker was lost, or which returns more than the client sends: at least once.

    An error gets a note that shows its unit. Messages show a unit as Python does, or as `label(unit)`; give
    that when errors of `fn` say already which unit they are about: a map with a `label` adds no note to them.

    `on_tick` is called with a `Tick` every 0.1 s or so while results are asked for, and at the end.

    Raises:
        ArgumentError: an argument is out of range, the client cannot meet `resources` or was shut down.
        UnknownNameError: `assign` is none of the two.
        NotSendableError: `fn` cannot be sent to the workers; for a unit, or what it returns, in its place.
    """
    _check(fn, units, assign, weigh, on_tick=on_tick, label=label)
    _check_counts(budget=budget, lanes=lanes, kills=kills)
    if client is None:
        client = current_client()
    elif not hasattr(client, "submit"):
        raise ArgumentError(
            f"job_map: client: expected a client, got {client!r}: write FrayClient({client!r})"
            if isinstance(client, str)
            else f"job_map: client: expected a client, such as ProcessClient(2), got {client!r}"
        )
    share = divide(client.max_workers, budget, lanes)
    packing = packing_for(
        name, fn, share.nested, shares_memory=client.shares_memory, keep_going=return_exceptions
    )
    source = Source(units)
    shared = SharedQueue() if assign == "pull" else None
    queue = deal(source.list_all(), share.lanes, weigh) if shared is None else shared
    scheduler = Scheduler(queue, share.lanes, kills, Pace(share.lanes), keep_going=return_exceptions)
    dispatcher = Dispatcher(client, JobRequest(name, _nothing, resources), scheduler, packing, label)
    ticker = Ticker(on_tick, lambda seconds: _tick(dispatcher, source, seconds))
    consumer = Consumer(name, source, shared, dispatcher, packing, ticker, keep_going=return_exceptions)
    return _begun(consumer, dispatcher)


def _begun(consumer: Consumer, dispatcher: Dispatcher) -> Generator[Any, None, None]:
    try:
        consumer.start()
    except BaseException:
        dispatcher.close()
        raise
    results = consumer.results()
    next(results)  # from here on its end ends the map
    return results


def _check(fn: object, units: object, assign: object, weigh: object, **others: object) -> None:
    for name, value in {"fn": fn, "weigh": weigh, **others}.items():
        if not callable(value) and (value is not None or name == "fn"):
            raise ArgumentError(f"job_map: {name}: expected a function, got {value!r}")
    if not isinstance(units, Iterable):
        raise ArgumentError(f"job_map: units: expected something to iterate over, got {units!r}")
    if assign not in ("pull", "static"):
        raise UnknownNameError("assign", str(assign), ["pull", "static"])
    if weigh is not None and assign != "static":
        raise ArgumentError('job_map: weigh: goes with assign="static" only; lanes that pull need no weights')


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None:
            check_count(name, value)


def _tick(dispatcher: Dispatcher, source: Source, seconds: float) -> Tick:
    def count(now: Scheduler) -> Tick:
        return Tick(now.done, now.failed, now.running, source.total, now.lost, seconds)

    return cast("Tick", dispatcher.ask(count))


def _nothing() -> None:
    """Stands in a request until a batch does."""
