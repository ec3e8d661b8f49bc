"""Who owns which page of a pool: streams, the free list, and what was promised. No tensors here.

Three sums hold at any moment. Every page is free or owned by exactly one stream. A stream owns
enough pages for what is stored and what is reserved. What is promised and not yet taken never
exceeds what is free, so a request that was given a promise can always be carried to its end.

The free list is a stack. Pages given back by a rollback go back in reverse, so that it stands as it
stood before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from treadle.engine.resources.step import Segment
from treadle.errors import ArgumentError, EngineError


@dataclass(slots=True)
class Stream:
    """One growing row of tokens.

    Attributes:
        pages: pages in the order of the tokens; the last `taken` belong to the admitted step.
        stored: tokens whose step committed.
        taken: pages reserved by a step that is admitted and not committed.
    """

    pages: list[int] = field(default_factory=list)
    stored: int = 0
    taken: int = 0


class PageLedger:
    """Accounts for `total` pages of `page_size` tokens each."""

    def __init__(self, total: int, page_size: int) -> None:
        if total < 1 or page_size < 1:
            raise ArgumentError(f"a pool needs at least one page of one token, got {total} x {page_size}")
        self.total = total
        self.page_size = page_size
        self._free = list(range(total - 1, -1, -1))
        self._streams: dict[str, dict[str, Stream]] = {}
        self._promised: dict[str, int] = {}

    @property
    def free(self) -> tuple[int, ...]:
        """The free pages, the next one to be taken last."""
        return tuple(self._free)

    def pages_for(self, tokens: int) -> int:
        """Pages that so many tokens need."""
        return -(-tokens // self.page_size)

    def can_promise(self, tokens: int) -> bool:
        """Whether a request of so many tokens can be carried to its end beside all the others."""
        return self.pages_for(tokens) <= self._unpromised()

    def open(self, rid: str, promised_tokens: int) -> None:
        """Open a request and promise it room for so many tokens.

        Raises:
            EngineError: it is open already, or the promise could not be kept.
        """
        if rid in self._streams:
            raise EngineError(f"request {rid!r} is open already: remove it first")
        if not self.can_promise(promised_tokens):
            raise EngineError(
                f"request {rid!r} asks for {self.pages_for(promised_tokens)} pages, {self._unpromised()} of "
                f"{self.total} can be promised: ask can_promise first"
            )
        self._streams[rid] = {}
        self._promised[rid] = self.pages_for(promised_tokens)

    def close(self, rid: str) -> None:
        """Free all pages of a request; one that is unknown has none."""
        self._promised.pop(rid, None)
        for stream in self._streams.pop(rid, {}).values():
            self._free.extend(reversed(stream.pages))

    def stream(self, rid: str, label: str) -> Stream:
        """The stream of that label, empty when nothing was added to it yet.

        Raises:
            EngineError: the request is not open.
        """
        if rid not in self._streams:
            raise EngineError(f"request {rid!r} is not open here: ingest it before a step names it")
        return self._streams[rid].setdefault(label, Stream())

    def can_take(self, segments: Sequence[Segment]) -> bool:
        """Whether every segment gets its pages without breaking a promise made to another request.

        Raises:
            EngineError: a request is not open, or two segments are for one stream.
        """
        if len({(segment.request_id, segment.label) for segment in segments}) < len(segments):
            raise EngineError(f"a step has one segment for a stream at most, got {list(segments)}")
        wanted: Counter[str] = Counter()
        for segment in segments:
            wanted[segment.request_id] += self._missing(segment)
        beyond = sum(max(0, pages - self._outstanding(rid)) for rid, pages in wanted.items())
        return beyond <= self._unpromised()

    def take(self, segments: Sequence[Segment]) -> list[int]:
        """Give every segment the pages it lacks, and return them all; only after `can_take`."""
        taken: list[int] = []
        for segment in segments:
            stream = self.stream(segment.request_id, segment.label)
            fresh = [self._free.pop() for _ in range(self._missing(segment))]
            stream.pages += fresh
            stream.taken += len(fresh)
            taken += fresh
        return taken

    def give_back(self, segments: Sequence[Segment]) -> None:
        """Undo `take` for the segments whose step did not commit, in reverse."""
        for segment in reversed(segments):
            stream = self._streams.get(segment.request_id, {}).get(segment.label)
            while stream is not None and stream.taken:
                self._free.append(stream.pages.pop())
                stream.taken -= 1

    def store(self, segments: Sequence[Segment]) -> None:
        """The segments' tokens are stored: their pages are no longer the step's but the stream's."""
        for segment in segments:
            stream = self.stream(segment.request_id, segment.label)
            stream.stored += segment.span
            stream.taken = 0

    def check_integrity(self) -> None:
        """Raise EngineError naming the sum that does not hold."""
        streams = [stream for labels in self._streams.values() for stream in labels.values()]
        seen = Counter([*self._free, *(page for stream in streams for page in stream.pages)])
        if seen != Counter(range(self.total)):
            wrong = {page: seen[page] for page in {*seen, *range(self.total)} if seen[page] != 1}
            raise EngineError(f"each page should be free or owned once; page -> times: {wrong}")
        for stream in streams:
            owned = len(stream.pages)
            if not 0 <= stream.taken <= owned or self.pages_for(stream.stored) > owned:
                raise EngineError(f"a stream owns too few pages for what it stores: {stream}")
        if self._unpromised() < 0:
            raise EngineError(f"{-self._unpromised()} more pages are promised than there are free")

    def _missing(self, segment: Segment) -> int:
        stream = self.stream(segment.request_id, segment.label)
        return max(0, self.pages_for(stream.stored + segment.span) - len(stream.pages))

    def _outstanding(self, rid: str) -> int:
        """Pages promised to a request that it has not taken yet."""
        owned = sum(len(stream.pages) for stream in self._streams[rid].values())
        return max(0, self._promised[rid] - owned)

    def _unpromised(self) -> int:
        return len(self._free) - sum(map(self._outstanding, self._promised))
