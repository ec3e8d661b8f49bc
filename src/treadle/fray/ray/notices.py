"""A list that grows, and that others wait at: each takes what has come since it last looked."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Notices(Generic[T]):
    """Keeps the latest `kept` items. For one event loop."""

    def __init__(self, kept: int) -> None:
        self._items: deque[T] = deque(maxlen=kept)
        self._count = 0
        self._came = asyncio.Event()

    def put(self, item: T) -> None:
        """Add an item, and wake whoever waits."""
        self._items.append(item)
        self._count += 1
        self._came.set()
        self._came = asyncio.Event()

    async def since(self, seen: int, patience: float) -> tuple[int, list[T]]:
        """The items after the first `seen`, and how many there were in all.

        Waits for one, at most `patience` seconds. Items that nobody fetched in time are left out.
        """
        if self._count <= seen:
            try:
                await asyncio.wait_for(self._came.wait(), patience)
            except TimeoutError:
                return seen, []
        new = min(self._count - seen, len(self._items))
        return self._count, list(self._items)[len(self._items) - new :]
