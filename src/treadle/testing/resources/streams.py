"""What each open request stored, as far as a check must know it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from treadle.testing.resources.bench import MAIN, Drawn

FORKED = ("left", "right")
"""Labels of streams that begin as forks."""


class Streams(dict[str, dict[str, int]]):
    """Request -> label of a stream -> its tokens, `limit` at most."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def open(self, rid: str) -> None:
        """A request that stored nothing."""
        self[rid] = {MAIN: 0}

    def of(self, rid: str, label: str = MAIN) -> int:
        """The tokens of a stream."""
        return self[rid][label]

    def room_of(self, rid: str, label: str = MAIN) -> int:
        """By how much a stream can grow."""
        return self._limit - self[rid][label]

    def with_room(self) -> list[str]:
        """The requests one of whose streams can grow, sorted."""
        return sorted(rid for rid, labels in self.items() if min(labels.values()) < self._limit)

    def with_tokens(self) -> list[str]:
        """The requests that stored something, sorted."""
        return sorted(rid for rid, labels in self.items() if any(labels.values()))

    def room(self, rids: Collection[str], begun: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
        """Stream -> by how much it can grow, of these requests; `begun` are about to be."""
        tokens = {(rid, label): count for rid in rids for label, count in self[rid].items()} | dict(begun)
        return {stream: self._limit - count for stream, count in tokens.items() if count < self._limit}

    def not_begun(self, rids: Collection[str]) -> Iterator[tuple[str, str]]:
        """Streams that these requests may yet have."""
        return ((rid, label) for rid in rids for label in FORKED if label not in self[rid])

    def add(self, rid: str, tokens: int) -> None:
        """So many are stored without a step."""
        self[rid][MAIN] += tokens

    def count(self, step: Drawn) -> None:
        """The step committed."""
        for fork in step.before:
            self[fork.target[0]][fork.to_label] = self.of(fork.request_id, fork.label)
        for rid, span, label in step.rows:
            self[rid][label] += span
        for fork in step.after:
            self[fork.target[0]][fork.to_label] = self.of(fork.request_id, fork.label)
