"""Who runs in the next step, and with how many tokens.

Requests are opened first come, first served. Without preemption only when the cache can promise room for
all their tokens: what runs can always finish, so nothing starves and nothing is thrown out. With it, when
their text so far has room; and when a step has none, the youngest makes room for those before it, so the
oldest always finishes. A step mixes both kinds of rows: first one token for each request that decodes, then
prompts, in chunks where they do not fit, up to the token budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from treadle.engine.generation import Generation, Row
from treadle.engine.node import Node
from treadle.errors import ArgumentError
from treadle.kernel import Unwind

Preemption = Literal["never", "recompute", "offload"]
"""What the youngest request does when there is no room: it cannot happen; it gives everything back and is
computed again later; or its pages wait elsewhere."""


class Scheduler:
    """Keeps the requests that wait, those that run, and those whose pages wait elsewhere, oldest first.

    Whoever waits came after everybody that was opened, but for those that made room.

    Args:
        node: where they run.
        max_batch: requests that run at once.
        token_budget: tokens of one step; at least `max_batch`, so that every decoding row moves.
        preemption: what the youngest does when a step has no room.

    Raises:
        ArgumentError: a limit out of range, or an unknown preemption.
    """

    def __init__(
        self, node: Node, *, max_batch: int, token_budget: int, preemption: Preemption = "never"
    ) -> None:
        if preemption not in get_args(Preemption):
            raise ArgumentError(f"preemption must be one of {get_args(Preemption)}, got {preemption!r}")
        if max_batch < 1 or token_budget < max_batch:
            raise ArgumentError(
                "max_batch must be at least 1 and token_budget at least max_batch, "
                f"got {max_batch} and {token_budget}"
            )
        self._node = node
        self._max_batch = max_batch
        self._budget = token_budget
        self._preemption = preemption
        self._waiting: deque[Generation] = deque()
        self._running: list[Generation] = []
        self._away: deque[Generation] = deque()

    @property
    def can_add(self) -> bool:
        """Whether one more request may run in the next step, if the cache has room for it."""
        return len(self._waiting) + len(self._running) + len(self._away) < self._max_batch

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not self._running and not self._away

    def add(self, generation: Generation) -> None:
        """Let a request wait for its turn."""
        self._waiting.append(generation)

    @property
    def unopened(self) -> list[Generation]:
        """Those whose opening failed: they have no part in a step, and wait to be finished."""
        return [each for each in self._running if each.failure]

    def schedule(self) -> tuple[Row, ...]:
        """Open what can run, and share out the budget: decoding rows, then prompts, oldest first."""
        self._bring_back()
        self._open_waiting()
        return self._share(_Progress(each, each.computed, len(each.tokens)) for each in self._opened)

    def foresee(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """The step after that of `rows`, if nobody joins and no token that is sampled ends its request."""
        done = {row.generation: row for row in rows}
        ahead = (_progress_after(each, done.get(each)) for each in self._opened)
        return self._share(each for each in ahead if each.known <= each.generation.stored_at_end)

    def runs(self, generation: Generation) -> bool:
        """Whether the request may have a part in a step."""
        return generation in self._running

    def preempt(self) -> bool:
        """Let the youngest make room for those before it; False when none is before it, or it may not."""
        opened = self._opened
        if self._preemption == "never" or len(opened) < 2:
            return False
        youngest, queue = opened[-1], self._waiting
        if self._preemption == "offload" and self._node.cache.can_offload(youngest.rid):
            self._node.cache.offload(youngest.rid)
            queue = self._away
        else:
            self._node.close(youngest)
            youngest.computed = 0
        self._running.remove(youngest)
        queue.appendleft(youngest)
        return True

    def named(self, request_id: str) -> list[Generation]:
        """Those that wait or run and bear the caller's name `request_id`."""
        everybody = (*self._running, *self._away, *self._waiting)
        return [each for each in everybody if each.request.id == request_id]

    def finish(self, generation: Generation) -> None:
        """A request has ended, well or badly, or is not wanted any more: free what it holds."""
        self._node.close(generation)
        for kept in (self._running, self._away, self._waiting):
            if generation in kept:
                kept.remove(generation)

    def close(self) -> None:
        """Drop everything, for a caller who wants no more; each request is tried."""
        self._waiting.clear()
        self._running += self._away
        self._away.clear()
        with Unwind() as unwind:
            while self._running:
                unwind.push(self._node.close, self._running.pop())

    def _bring_back(self) -> None:
        """Before others are opened: whoever is away was opened before them."""
        while self._away and self._has_seat and self._node.cache.can_reload(self._away[0].rid):
            self._node.cache.reload(self._away[0].rid)
            self._running.append(self._away.popleft())

    def _open_waiting(self) -> None:
        # No earlier than it can compute: by then what it begins with may have been computed for another.
        while self._waiting and self._work < self._budget and self._may_open(self._waiting[0]):
            # Running before it is open: whatever interrupts the opening, `close` finds it.
            self._running.append(self._waiting.popleft())
            self._open(self._running[-1])

    def _open(self, generation: Generation) -> None:
        try:
            self._node.open(generation, self._promise(generation))
        except Exception as error:  # noqa: BLE001 - one request's failure, said in its completion
            generation.failure = error

    def _may_open(self, generation: Generation) -> bool:
        return not self._away and self._has_seat and self._node.can_open(self._promise(generation))

    @property
    def _opened(self) -> list[Generation]:
        """Those that may have a part in a step, oldest first."""
        return [each for each in self._running if not each.failure]

    @property
    def _work(self) -> int:
        """Tokens that could be computed now."""
        return sum(each.remaining for each in self._opened)

    @property
    def _has_seat(self) -> bool:
        return len(self._running) < self._max_batch

    def _promise(self, generation: Generation) -> int:
        """Tokens that the request is opened with room for."""
        return generation.stored_at_end if self._preemption == "never" else len(generation.tokens)

    def _share(self, progress: Iterable[_Progress]) -> tuple[Row, ...]:
        """A row for each, as far as the budget goes: first those that decode."""
        rows, left = [], self._budget
        for each in sorted(progress, key=lambda each: each.remaining > 1):
            span = min(left, each.remaining)
            if span:
                rows.append(Row(each.generation, each.computed, span, span == each.remaining))
            left -= span
        return tuple(rows)


class _Progress(NamedTuple):
    """How far a request is: `computed` of its `known` tokens are."""

    generation: Generation
    computed: int
    known: int

    @property
    def remaining(self) -> int:
        return self.known - self.computed


def _progress_after(generation: Generation, row: Row | None) -> _Progress:
    """How far a request is after a step in which it has that row, or none."""
    known = len(generation.tokens)
    if row is None:
        return _Progress(generation, generation.computed, known)
    return _Progress(generation, row.end, known + row.samples)
