"""Several actors of one kind, as one: groups work the same on every backend."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, Generic, Self, TypeVar

from treadle.fray.checks import check_count
from treadle.fray.protocol import ActorHandle, ActorRequest, Client, JobHandle
from treadle.fray.running_job import parked
from treadle.fray.waiting import wait_all

A = TypeVar("A")


class ActorGroup(Generic[A]):
    """Actors by their place in the group. As a `with` block it terminates them at the end."""

    def __init__(self, actors: Sequence[ActorHandle[A]]) -> None:
        self._actors = tuple(actors)

    def __repr__(self) -> str:
        return f"<group of {', '.join(each.actor_id for each in self._actors)}>"

    def __len__(self) -> int:
        return len(self._actors)

    def __getitem__(self, place: int) -> ActorHandle[A]:
        return self._actors[place]

    def __iter__(self) -> Iterator[ActorHandle[A]]:
        return iter(self._actors)

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> list[JobHandle[Any]]:
        """Call the method of every member; the handles of the calls, in the order of the members."""
        return [each.submit(method, *args, **kwargs) for each in self._actors]

    def call(self, method: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Call the method of every member, and wait for all; what they returned.

        Raises:
            BaseException: what the first one to fail raised, as soon as it has; the others go on.
        """
        calls = self.submit(method, *args, **kwargs)
        wait_all(calls, raise_on_failure=True)
        return [each.result() for each in calls]

    def map(self, method: str, items: Iterable[Any]) -> Iterator[Any]:
        """Call the method once for each item, by whichever member is free; the results in order of the items.

        A member is given the next item when it has ended the one before, so a slow item holds up only its
        own member. Items are taken as they are needed, at most four for each member ahead of the results.

        Raises:
            BaseException: what a call raised, in its turn; no more items are taken, calls that run go on.
        """
        return _Distribution(self._actors, method, items).results()

    def terminate(self) -> None:
        """End all members; see `ActorHandle`."""
        for each in self._actors:
            each.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()


def create_actor_group(client: Client, request: ActorRequest[A], count: int) -> ActorGroup[A]:
    """A group of `count` actors, each made by `request.make()`. The third is called NAME-2.

    Raises:
        ArgumentError: `count` is no whole number of at least 1, or the client refuses the request.
    """
    check_count("count", count)
    actors: list[ActorHandle[A]] = []
    try:
        for place in range(count):
            member = replace(request, name=f"{request.name}-{place}")
            actors.append(client.create_actor(member))
    except BaseException:
        ActorGroup(actors).terminate()
        raise
    return ActorGroup(actors)


_AHEAD = 4
"""Items for each member that are taken before the results of earlier ones are."""


class _Distribution:
    """The items of one `map` on their way."""

    def __init__(self, actors: Sequence[ActorHandle[Any]], method: str, items: Iterable[Any]) -> None:
        self._method = method
        self._items = iter(items)
        self._idle = deque(actors)
        self._ahead = _AHEAD * len(actors)
        self._calls: deque[JobHandle[Any]] = deque()  # in the order of the items
        self._freed: SimpleQueue[ActorHandle[Any]] = SimpleQueue()

    def results(self) -> Iterator[Any]:
        self._give()
        while self._calls:
            while not _has_ended(self._calls[0]):
                with parked():
                    self._idle.append(self._freed.get())
                self._give()
            yield self._calls.popleft().result()
            self._take_back()
            self._give()

    def _give(self) -> None:
        while self._idle and len(self._calls) < self._ahead:
            try:
                item = next(self._items)
            except StopIteration:
                return
            actor = self._idle.popleft()
            call = actor.submit(self._method, item)
            self._calls.append(call)
            call.add_done_callback(_freeing(self._freed, actor))

    def _take_back(self) -> None:
        while not self._freed.empty():
            self._idle.append(self._freed.get())


def _has_ended(call: JobHandle[Any]) -> bool:
    return call.status().is_final


def _freeing(
    freed: SimpleQueue[ActorHandle[Any]], actor: ActorHandle[Any]
) -> Callable[[JobHandle[Any]], object]:
    return lambda _: freed.put(actor)
