"""Who runs in the next step, and with how many tokens.

Requests are opened first come, first served, and only when the cache can promise room for all their
tokens: what runs can always finish, so nothing starves and nothing is thrown out. A step mixes both
kinds of rows: first one token for each request that decodes, then prompts, in chunks where they do
not fit, up to the token budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from treadle.engine.generation import Generation, Row
from treadle.engine.node import Node
from treadle.errors import ArgumentError
from treadle.kernel import Unwind


class Scheduler:
    """Keeps the requests that wait and those that run.

    Args:
        node: where they run.
        max_batch: requests that run at once.
        token_budget: tokens of one step; at least `max_batch`, so that every decoding row moves.

    Raises:
        ArgumentError: a limit out of range.
    """

    def __init__(self, node: Node, *, max_batch: int, token_budget: int) -> None:
        if max_batch < 1 or token_budget < max_batch:
            raise ArgumentError(
                "max_batch must be at least 1 and token_budget at least max_batch, "
                f"got {max_batch} and {token_budget}"
            )
        self._node = node
        self._max_batch = max_batch
        self._budget = token_budget
        self._waiting: deque[Generation] = deque()
        self._running: list[Generation] = []

    @property
    def can_add(self) -> bool:
        """Whether one more request may run in the next step, if the cache has room for it."""
        return len(self._waiting) + len(self._running) < self._max_batch

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not self._running

    def add(self, generation: Generation) -> None:
        """Let a request wait for its turn."""
        self._waiting.append(generation)

    @property
    def unopened(self) -> list[Generation]:
        """Those whose opening failed: they have no part in a step, and wait to be finished."""
        return [each for each in self._running if each.failure]

    def schedule(self) -> tuple[Row, ...]:
        """Open what can run, and share out the budget: decoding rows, then prompts, oldest first."""
        self._open_waiting()
        opened = [each for each in self._running if not each.failure]
        decoding_first = sorted(opened, key=lambda each: each.remaining > 1)
        return tuple(self._share(decoding_first))

    def named(self, request_id: str) -> list[Generation]:
        """Those that wait or run and bear the caller's name `request_id`."""
        return [each for each in (*self._running, *self._waiting) if each.request.id == request_id]

    def finish(self, generation: Generation) -> None:
        """A request has ended, well or badly, or is not wanted any more: free what it holds."""
        self._node.close(generation)
        (self._running if generation in self._running else self._waiting).remove(generation)

    def close(self) -> None:
        """Drop everything, for a caller who wants no more; each request is tried."""
        self._waiting.clear()
        with Unwind() as unwind:
            while self._running:
                unwind.push(self._node.close, self._running.pop())

    def _open_waiting(self) -> None:
        while self._waiting and self._may_open(self._waiting[0]):
            # Running before it is open: whatever interrupts the opening, `close` finds it.
            self._running.append(self._waiting.popleft())
            self._open(self._running[-1])

    def _open(self, generation: Generation) -> None:
        try:
            self._node.open(generation)
        except Exception as error:  # noqa: BLE001 - one request's failure, said in its completion
            generation.failure = error

    def _may_open(self, generation: Generation) -> bool:
        return len(self._running) < self._max_batch and self._node.can_open(generation)

    def _share(self, generations: list[Generation]) -> Iterator[Row]:
        left = self._budget
        for generation in generations:
            span = min(left, generation.remaining)
            if span:
                yield Row(generation, span)
            left -= span
