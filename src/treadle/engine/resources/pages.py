"""The steps of the page accounts: what a step takes, gives back or stores. No tensors here.

A page is free, or its owners are counted; a stream owns enough pages for what is stored; and what was
promised can be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from treadle.engine.resources.accounts import Accounts
from treadle.engine.resources.page_pool import PagePool
from treadle.engine.resources.step import Segment
from treadle.engine.resources.streams import Fresh, Stream
from treadle.errors import ArgumentError, EngineError


class Fork(NamedTuple):
    """A new stream that begins as another one of the same request, or of `to_request`."""

    request_id: str
    to_label: str
    label: str = "main"
    to_request: str | None = None

    @property
    def target(self) -> tuple[str, str]:
        """Request and label of the new stream."""
        return self.to_request or self.request_id, self.to_label


class PageLedger:
    """Accounts for `total` pages of `page_size` tokens each.

    Args:
        total: pages.
        page_size: tokens of a page.
        window: how far back a token sees, itself included; None: to the beginning.

    Raises:
        ArgumentError: a pool without a page, pages without a token, a window without one.
    """

    def __init__(self, total: int, page_size: int, window: int | None = None) -> None:
        if page_size < 1 or (window is not None and window < 1):
            raise ArgumentError(f"a page and a window need a token, got {page_size} and {window}")
        self.accounts = Accounts(PagePool(total), page_size)
        self.total = total
        self.page_size = page_size
        self.window = window

    @property
    def free(self) -> tuple[int, ...]:
        """The free pages, the next one to be taken last."""
        return self.accounts.pool.free

    @property
    def available(self) -> int:
        """Pages that no request has: the free ones, and those that a prefix cache alone keeps."""
        return self.accounts.pool.available

    def pages_for(self, tokens: int) -> int:
        """Pages that so many tokens need."""
        return self.accounts.pages_for(tokens)

    def can_promise(self, tokens: int) -> bool:
        """Whether a request of so many tokens can be carried to its end beside all the others."""
        return self.pages_for(tokens) <= self.accounts.unpromised

    def open(self, rid: str, promised_tokens: int) -> None:
        """Open a request and promise it room for so many tokens.

        Raises:
            EngineError: it is open already, or the promise could not be kept.
        """
        self.accounts.open(rid, self.pages_for(promised_tokens))

    def close(self, rid: str) -> None:
        """Free all pages of a request; one that is unknown has none."""
        self.accounts.close(rid)

    def stream(self, rid: str, label: str = "main") -> Stream:
        """The stream of that label, empty when nothing was added to it yet.

        Raises:
            EngineError: the request is not open.
        """
        return self.accounts.stream(rid, label)

    def can_take(self, segments: Sequence[Segment]) -> bool:
        """Whether every segment gets its pages without breaking a promise made to another request.

        Raises:
            EngineError: a request is not open.
        """
        wanted: dict[str, int] = {}
        for rid, span, label in segments:
            wanted[rid] = wanted.get(rid, 0) + self.stream(rid, label).missing(span)
        beyond = sum(
            max(0, pages - self.accounts.get(rid).outstanding) for rid, pages in wanted.items() if pages
        )
        return beyond <= self.accounts.unpromised

    def take(self, segments: Sequence[Segment]) -> Fresh:
        """Give every segment the pages it lacks, and return them all; only after `can_take`."""
        fresh = Fresh()
        for rid, span, label in segments:
            if count := self.stream(rid, label).take(span, fresh):
                self.accounts.use(self.accounts.get(rid), count)
        return fresh

    def give_back(self, segments: Sequence[Segment]) -> None:
        """Undo `take` for the segments whose step did not commit, in reverse."""
        for rid, _, label in reversed(segments):
            account = self.accounts.find(rid)
            if account is not None and label in account.streams:
                self.accounts.use(account, -account.streams[label].undo())

    def store(self, segments: Sequence[Segment]) -> None:
        """The segments' tokens are stored: their pages are no longer the step's but the stream's.

        Raises:
            EngineError: a segment took nothing before, or was stored already; then none is stored.
        """
        for rid, span, label in segments:
            if span and self.stream(rid, label).reserved is None:
                raise EngineError(
                    f"{span} tokens of request {rid!r} are to be stored in {label!r}, and no pages were "
                    "taken for them: admit a step before it is committed, and commit it once"
                )
        for rid, span, label in segments:
            self.stream(rid, label).store(span, self.window)

    def fork(self, forks: Iterable[Fork]) -> None:
        """Let new streams begin as others; again for the same step: nothing.

        Raises:
            EngineError: a request is not open, or the new stream has tokens already.
        """
        for each in forks:
            self.check_fork(each)
            target = self.stream(*each.target)
            if not target.born:
                target.follow(self.stream(each.request_id, each.label))

    def check_fork(self, fork: Fork) -> None:
        """Whether the new stream can begin so.

        Raises:
            EngineError: a request is not open, or the new stream has tokens already.
        """
        self.accounts.get(fork.request_id)
        rid, label = fork.target
        target = self.accounts.get(rid).streams.get(label)
        taken = target is not None and not target.born and (target.start or target.pages)
        if taken or fork.target == (fork.request_id, fork.label):
            raise EngineError(f"stream {fork.target} has tokens already: fork into a new label")

    def unfork(self, forks: Sequence[Fork]) -> None:
        """Undo `fork` for streams whose step did not commit, in reverse and after `give_back`."""
        for each in reversed(forks):
            rid, label = each.target
            account = self.accounts.find(rid)
            if account is not None and label in account.streams and account.streams[label].born:
                self.accounts.pool.drop(account.streams.pop(label).owned)

    def settle(self, forks: Iterable[Fork]) -> None:
        """The new streams' step committed: they stay."""
        for each in forks:
            self.stream(*each.target).born = False

    def check_integrity(self) -> None:
        """Raise EngineError naming the sum that does not hold."""
        self.accounts.check_integrity()
