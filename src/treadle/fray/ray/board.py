"""The board of a client: an actor that knows where its jobs run, what they print, and what they were told.

Workers report in lots, without waiting; the client asks. It takes no processor, and what it is asked to wait
for it waits for in its event loop, so that nobody polls.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from treadle.fray.ray.entries import Entries
from treadle.fray.ray.notices import Notices
from treadle.fray.ray.remote import carry, new_host
from treadle.fray.ray.ticket import NAMESPACE, Fate, Lot, Opening, Order, Outcome, Start, Ticket, Welcome

LAG_S = 0.1
"""A job may run this long before the board hears of it; whoever asks is answered after that at the latest."""

BUSY_LAG_S = 0.5
"""The same on a busy machine, where a job that has begun must not be taken for one that waits."""

PATIENCE_S = 5.0
"""How long a question waits for news; who asks comes again, so that nothing waits for ever for the dead."""


class Board:
    """See the module."""

    def __init__(self, welcome: Welcome) -> None:
        self._welcome = welcome
        self._jobs = Entries()
        self._orders: Notices[Order] = Notices(10_000)
        self._news: Notices[Lot] = Notices(2_000)
        self._fates: dict[str, Fate] = {}
        self._hosts: list[Any] = []
        self._refs: dict[Ticket, Any] = {}
        self._idle = asyncio.Event()

    async def enroll(self) -> Welcome:
        """What a worker must know before its first job of this client."""
        return self._welcome

    async def report_start(self, start: Start) -> None:
        """Take note of a job that has begun."""
        entry = self._jobs.of(start.job_id)
        entry.start, entry.lots = start, 0
        entry.change()

    async def report_output(self, lot: Lot) -> None:
        """Take note of what a job has printed."""
        entry = self._jobs.of(lot.job_id)
        entry.lots = lot.number
        for kind, text in lot.pieces:
            entry.log.write(kind, text)
        if entry.start is not None:
            entry.start = entry.start._replace(output=lot.reached)
        self._news.put(lot)
        entry.change()

    async def where(self, job_id: str, lag: float = LAG_S) -> Start | None:
        """Where the job has begun; None when nothing is heard of that within the lag."""
        entry = self._jobs.of(job_id)
        if entry.start is None:
            await entry.until(lambda: entry.start is not None, lag)
        return entry.start

    async def tail(self, job_id: str, max_lines: int, lots: int) -> list[str]:
        """The last lines of the job, once `lots` lots of them have come."""
        entry = self._jobs.of(job_id)
        await entry.until(lambda: entry.lots >= lots, PATIENCE_S)
        return entry.log.tail(max_lines)

    async def claim(self, job_id: str, lane: str) -> bool:
        """Whether the task of that lane is to carry the job out: the first one to ask."""
        entry = self._jobs.of(job_id)
        if entry.lane is None:
            entry.lane = lane
        return entry.lane == lane

    async def claimed(self, job_id: str) -> str:
        """The lane of the task that has claimed the job; empty when none has."""
        return self._jobs.of(job_id).lane or ""

    async def order(self, job_id: str, interrupt: bool) -> Start | None:
        """Tell the job, and those that descend from it, to stop. Gives where it has begun."""
        if (fate := self._fates.get(job_id)) is not None:
            self._fates[job_id] = fate._replace(stopped=True)
        self._orders.put(Order(job_id, interrupt))
        return await self.where(job_id, BUSY_LAG_S)

    async def orders(self, seen: int) -> tuple[int, list[Order]]:
        """For workers: the orders after the first `seen`."""
        return await self._orders.since(seen, PATIENCE_S)

    async def news(self, seen: int, patience: float = PATIENCE_S) -> tuple[int, list[Lot]]:
        """For the client: what jobs have printed."""
        return await self._news.since(seen, patience)

    async def made(self, actor_id: str, losses: int) -> None:
        """Count that the object of an actor was made; after `losses` losses it is not made again."""
        fate = self._fates.get(actor_id, Fate())
        self._fates[actor_id] = fate._replace(made=fate.made + 1, losses=losses)

    async def fate(self, actor_id: str) -> Fate:
        """What has become of an actor so far."""
        return self._fates.get(actor_id, Fate())

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
