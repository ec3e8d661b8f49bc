"""The thread that asks for results: it pulls units in, waits for what is next, and gives it out in order."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from treadle.fray.mapping.dispatcher import Arrival, Dispatcher
from treadle.fray.mapping.packing import Packing
from treadle.fray.mapping.queues import SharedQueue
from treadle.fray.mapping.reorder import ReorderBuffer
from treadle.fray.mapping.source import Source
from treadle.fray.mapping.tick import Ticker
from treadle.kernel import add_note


class Consumer:
    """`queue` is where pulled units go, None when all were listed before. `name` is that of the map."""

    def __init__(
        self,
        name: str,
        source: Source,
        queue: SharedQueue | None,
        dispatcher: Dispatcher,
        packing: Packing,
        ticker: Ticker,
        *,
        keep_going: bool,
    ) -> None:
        self._name = name
        self._source = source
        self._queue = queue
        self._dispatcher = dispatcher
        self._packing = packing
        self._ticker = ticker
        self._keep_going = keep_going
        self._order = ReorderBuffer()

    def start(self) -> None:
        """Let the lanes begin.

        Raises:
            Exception: the client does not take the work.
        """
        if not self._feed():  # all were listed before, or there are none
            self._dispatcher.hand_out()
            self._note_end()
        for arrival in self._dispatcher.arrivals():
            if arrival.ends and arrival.error is not None:
                raise arrival.error
            self._sort_in(arrival)

    def results(self) -> Generator[Any, None, None]:
        """First None, so that an iterator that is never used is ended too; then the results."""
        try:
            yield None
            while chunk := self._next():
                if not self._ticker.wanted:
                    yield from chunk
                    continue
                for result in chunk:
                    yield result
                    self._ticker.tell()
            self._ticker.tell(always=True)
        finally:
            self._dispatcher.close()

    def _next(self) -> list[Any]:
        """The next results in order; none at the end."""
        while True:
            fed = self._feed()
            for arrival in self._dispatcher.arrivals():
                self._sort_in(arrival)
            if ready := self._ready():
                return ready
            self._raise_what_is_next()
            if self._source.ended and self._order.next == self._source.pulled:
                return []
            self._ticker.tell()
            if not fed:
                self._dispatcher.wait(self._ticker.left())

    def _feed(self) -> bool:
        """Pull units as far as there is room for them; whether any came."""
        queue, source = self._queue, self._source
        if queue is None or source.ended:
            return False
        room = self._dispatcher.ask(lambda scheduler: scheduler.room(source.pulled))
        if not room:
            return False
        found = source.pull(room)
        self._dispatcher.ask(lambda _: queue.add(found))
        self._dispatcher.hand_out()
        self._note_end()
        return bool(found)

    def _note_end(self) -> None:
        if self._source.error is not None:
            self._order.put_error(self._source.pulled, self._source.error)

    def _ready(self) -> list[Any]:
        ready = self._order.ready(self._dispatcher.ask(lambda scheduler: max(16, scheduler.size)))
        if ready:
            self._dispatcher.ask(lambda scheduler: scheduler.fetched(self._order.next))
            self._dispatcher.hand_out()
        return ready

    def _raise_what_is_next(self) -> None:
        if (error := self._order.error()) is not None:
            self._ticker.tell(always=True)
            raise error

    def _sort_in(self, arrival: Arrival) -> None:
        first = arrival.numbers[0]
        if arrival.error is not None:
            self._put_error(first, arrival.error, arrival.shown.get(0), ends=arrival.ends)
            return
        assert arrival.outcome is not None  # noqa: S101 - it is one or the other
        try:
            results, errors = self._packing.open(arrival.outcome)
        except Exception as error:  # noqa: BLE001 - its class is not to be had here, or it fails to load
            add_note(error, f"{self._name}: results from unit {first} on cannot be read")
            self._put_error(first, error, None, ends=True)
            return
        self._sort_in_results(arrival, results, errors)

    def _sort_in_results(
        self, arrival: Arrival, results: list[Any], errors: dict[int, BaseException]
    ) -> None:
        end = len(results)
        for place in sorted(errors, reverse=True):
            if not self._put_error(arrival.numbers[place], errors[place], arrival.shown.get(place)):
                end = place
        if not errors:
            self._order.put(arrival.numbers[:end], results)
            return
        kept = [place for place in range(end) if place not in errors]
        self._order.put([arrival.numbers[each] for each in kept], [results[each] for each in kept])

    def _put_error(self, number: int, error: BaseException, shown: str | None, *, ends: bool = False) -> bool:
        """Whether the error is taken for a result."""
        if shown is not None:
            add_note(error, f"unit {number} of {self._name}: {shown}")
        if taken := self._keep_going and isinstance(error, Exception) and not ends:
            self._order.put([number], [error])
        else:
            self._dispatcher.ask(lambda scheduler: scheduler.stop_at(number))
            self._order.put_error(number, error)
        return taken
