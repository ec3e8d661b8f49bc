"""The board of a client: an actor that knows where its jobs run, what they print, and what they were told.

Workers report in lots, without waiting; the client asks. It takes no processor, and what it is asked to wait
for it waits for in its event loop, so that nobody polls.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from treadle.fray.job_log import JobLog
from treadle.fray.ray.feed import Feed
from treadle.fray.ray.remote import carry, new_host
from treadle.fray.ray.ticket import NAMESPACE, Lot, Opening, Order, Outcome, Start, Ticket, Welcome

KEPT_JOBS = 5_000
"""Of how many jobs that have ended the board still knows where they ran and what they printed."""

LAG_S = 0.1
"""A job may run this long before the board hears of it; whoever asks is answered after that at the latest."""

BUSY_LAG_S = 0.5
"""The same on a busy machine, where a job that has begun must not be taken for one that waits."""

PATIENCE_S = 5.0
"""How long a question waits for news; who asks comes again, so that nothing waits for ever for the dead."""


class JobEntry:
    """What is known of one job."""

    def __init__(self) -> None:
        self.start: Start | None = None
        self.log = JobLog()
        self.lots = 0
        self.lane: str | None = None
        self.changed = asyncio.Event()

    def change(self) -> None:
        """Wake whoever waits for this job."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], patience: float) -> None:
        """Return when it holds, or when so many seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not holds():
                    await self.changed.wait()


class Board:
    """See the module."""

    def __init__(self, welcome: Welcome) -> None:
        self._welcome = welcome
        self._jobs: OrderedDict[str, JobEntry] = OrderedDict()
        self._orders: Feed[Order] = Feed(10_000)
        self._news: Feed[Lot] = Feed(2_000)
        self._made: Counter[str] = Counter()
        self._hosts: list[Any] = []
        self._refs: dict[Ticket, Any] = {}
        self._idle = asyncio.Event()

    async def enroll(self) -> Welcome:
        """What a worker must know before its first job of this client."""
        return self._welcome

    async def report_start(self, start: Start) -> None:
        """Take note of a job that has begun."""
        entry = self._entry(start.job_id)
        entry.start, entry.lots = start, 0
        entry.change()

    async def report_output(self, lot: Lot) -> None:
        """Take note of what a job has printed."""
        entry = self._entry(lot.job_id)
        entry.lots = lot.number
        for kind, text in lot.pieces:
            entry.log.write(kind, text)
        if entry.start is not None:
            entry.start = entry.start._replace(output=lot.reached)
        self._news.put(lot)
        entry.change()

    async def where(self, job_id: str, lag: float = LAG_S) -> Start | None:
        """Where the job has begun; None when nothing is heard of that within the lag."""
        entry = self._entry(job_id)
        if entry.start is None:
            await entry.until(lambda: entry.start is not None, lag)
        return entry.start

    async def tail(self, job_id: str, max_lines: int, lots: int) -> list[str]:
        """The last lines of the job, once `lots` lots of them have come."""
        entry = self._entry(job_id)
        await entry.until(lambda: entry.lots >= lots, PATIENCE_S)
        return entry.log.tail(max_lines)

    async def claim(self, job_id: str, lane: str) -> bool:
        """Whether the task of that lane is to carry the job out: the first one to ask."""
        entry = self._entry(job_id)
        if entry.lane is None:
            entry.lane = lane
        return entry.lane == lane

    async def claimed(self, job_id: str) -> str:
        """The lane of the task that has claimed the job; empty when none has."""
        return self._entry(job_id).lane or ""

    async def order(self, job_id: str, interrupt: bool) -> Start | None:
        """Tell the job, and those that descend from it, to stop. Gives where it has begun."""
        self._orders.put(Order(job_id, interrupt))
        return await self.where(job_id, BUSY_LAG_S)

    async def orders(self, seen: int) -> tuple[int, list[Order]]:
        """For workers: the orders after the first `seen`."""
        return await self._orders.since(seen, PATIENCE_S)

    async def news(self, seen: int, patience: float = PATIENCE_S) -> tuple[int, list[Lot]]:
        """For the client: what jobs have printed."""
        return await self._news.since(seen, patience)

    async def made(self, actor_id: str) -> None:
        """Count that the object of an actor was made."""
        self._made[actor_id] += 1

    async def restarts(self, actor_id: str) -> int:
        """How many times it was made again."""
        return max(self._made[actor_id] - 1, 0)

    async def carry(self, call: bytes, packed_ticket: bytes, options: dict[str, Any]) -> Outcome | bytes:
        """Submit a task of a job, so that it does not end with whoever asks for it; what came of it."""
        ticket = Ticket.unpacked(packed_ticket)
        ref = self._refs[ticket] = carry.options(**options).remote(call, packed_ticket)
        try:
            # The end of whoever asks must not be the end of the task.
            return cast("Outcome | bytes", await asyncio.shield(asyncio.wrap_future(ref.future())))
        finally:
            self._refs.pop(ticket, None)
            self._idle.set()

    async def cancel(self, job_id: str, force: bool) -> None:
        """Cancel the tasks of a job that were submitted here."""
        for ref in [ref for ticket, ref in self._refs.items() if ticket.job_id == job_id]:
            ray.cancel(ref, force=force)

    async def live(self) -> None:
        """Never returns: who waits for it hears of the end of this board."""
        await asyncio.Event().wait()

    async def end_after(self, anchor: Any) -> None:
        """End this board once `anchor`, the board of the client, has ended, and no job of its own runs."""
        self._ending = asyncio.ensure_future(self._end_after(anchor, ray.get_runtime_context().current_actor))

    async def _end_after(self, anchor: Any, this: Any) -> None:
        with suppress(ray.exceptions.RayError):
            await anchor.live.remote()
        while self._refs:
            self._idle.clear()
            await self._idle.wait()
        ray.kill(this)

    async def open_host(self, opening: Opening) -> Any:
        """Start the host of an actor that a job has asked for; it ends with this board."""
        host = new_host(opening)
        self._hosts.append(host)
        return host

    def _entry(self, job_id: str) -> JobEntry:
        if (entry := self._jobs.get(job_id)) is None:
            entry = self._jobs[job_id] = JobEntry()
            while len(self._jobs) > KEPT_JOBS:
                self._jobs.popitem(last=False)
        else:
            self._jobs.move_to_end(job_id)
        return entry


def open_board(name: str, welcome: Welcome, node_id: str) -> Any:
    """Start a board on that node; its handle. It ends with this driver, or by `ray.kill`."""
    strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return _actor(name=name, scheduling_strategy=strategy, max_restarts=-1).remote(welcome)


def open_keeper(name: str, welcome: Welcome, anchor: Any) -> Any:
    """Start a board that outlives this driver: it ends when `anchor` has ended and its own jobs have too."""
    keeper = _actor(name=name, lifetime="detached").remote(welcome)
    keeper.end_after.remote(anchor)
    return keeper


def _actor(**options: Any) -> Any:
    fixed = {"num_cpus": 0, "max_concurrency": 10_000, "namespace": NAMESPACE}
    return cast("Any", ray.remote(Board)).options(**fixed, **options)
