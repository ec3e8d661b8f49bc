"""The thread that asks for results: it pulls units in, waits for what is next, and gives it out in order."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from treadle.fray.mapping.drive import Arrival, Drive
from treadle.fray.mapping.order import Order
from treadle.fray.mapping.parcels import Parcels
from treadle.fray.mapping.source import Source
from treadle.fray.mapping.supply import Shared
from treadle.fray.mapping.tick import Ticker
from treadle.kernel import add_note


class Consumer:
    """`supply` is where pulled units go, None when all were listed before. `name` is that of the map."""

    def __init__(
        self,
        name: str,
        source: Source,
        supply: Shared | None,
        drive: Drive,
        parcels: Parcels,
        ticker: Ticker,
        *,
        keep_going: bool,
    ) -> None:
        self._name = name
        self._source = source
        self._supply = supply
        self._drive = drive
        self._parcels = parcels
        self._ticker = ticker
        self._keep_going = keep_going
        self._order = Order()

    def start(self) -> None:
        """Let the lanes begin.

        Raises:
            Exception: the client does not take the work.
        """
        self._feed()
        self._drive.hand_out()
        self._note_end()
        for arrival in self._drive.arrivals():
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
            self._drive.close()

    def _next(self) -> list[Any]:
        """The next results in order; none at the end."""
        while True:
            fed = self._feed()
            for arrival in self._drive.arrivals():
                self._sort_in(arrival)
            if ready := self._ready():
                return ready
            self._raise_what_is_next()
            if self._source.ended and self._order.next == self._source.pulled:
                return []
            self._ticker.tell()
            if not fed:
                self._drive.wait(self._ticker.left())

    def _feed(self) -> bool:
        """Pull units as far as there is room for them; whether any came."""
        supply, source = self._supply, self._source
        if supply is None or source.ended:
            return False
        room = self._drive.ask(lambda units: units.room(source.pulled))
        if not room:
            return False
        found = source.pull(room)
        self._drive.ask(lambda _: supply.add(found))
        self._drive.hand_out()
        self._note_end()
        return bool(found)

    def _note_end(self) -> None:
        if self._source.error is not None:
            self._order.put_error(self._source.pulled, self._source.error)

    def _ready(self) -> list[Any]:
        ready = self._order.ready(self._drive.ask(lambda units: max(16, units.size)))
        if ready:
            self._drive.ask(lambda units: units.fetched(self._order.next))
            self._drive.hand_out()
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
            results, errors = self._parcels.open(arrival.outcome)
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
            self._drive.ask(lambda units: units.stop_at(number))
            self._order.put_error(number, error)
        return taken
