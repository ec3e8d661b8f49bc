"""What other nodes are told about the keys and values of a request: how much, where, and of which shape."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import NamedTuple

from treadle.engine.resources.kv_store import KvShape, KvStore
from treadle.engine.resources.pages import PageLedger
from treadle.engine.resources.step import PublishedInfo


@dataclass(frozen=True)
class KvDescriptor:
    """What one needs to know to read the pages.

    Attributes:
        shape: of a token.
        page_size: tokens of a page.
        dtype: kind of number, by its name in torch.
        layout: how the numbers stand inside a page, by name.
        pages: how many the pool has.
        path: the file that has them; None where no other process can read them.
    """

    shape: KvShape
    page_size: int
    dtype: str
    layout: str
    pages: int
    path: str | None = None

    @property
    def numbers(self) -> int:
        """How many numbers the file holds."""
        shape = self.shape
        return shape.layers * 2 * shape.heads * self.pages * self.page_size * shape.width

    def fits(self, other: KvDescriptor) -> bool:
        """Whether a page of one can be a page of the other."""
        return replace(self, pages=0, path=None) == replace(other, pages=0, path=None)


@dataclass(frozen=True)
class KvPublication(PublishedInfo):
    """A request's main stream at one moment.

    Attributes:
        length: tokens stored.
        pages: those that hold them, in order.
        gone: pages that were given back in front of these; 0 without a window.
        epoch: of the stream; with another epoch, the tokens stand on other pages.
        descriptor: of the pages.
    """

    length: int
    pages: tuple[int, ...]
    gone: int
    epoch: int
    descriptor: KvDescriptor


class KvSnapshot(NamedTuple):
    """What a publication is made of later."""

    length: int
    pages: array[int]
    gone: int
    epoch: int


class KvPublisher:
    """Publishes the requests of `ledger`, whose pages stand in `store`, in a `layout` by name."""

    def __init__(self, ledger: PageLedger, store: KvStore, layout: str) -> None:
        self._ledger = ledger
        dtype = str(store.dtype).removeprefix("torch.")
        self.descriptor = KvDescriptor(store.shape, store.page_size, dtype, layout, store.pages, store.path)

    def snapshot(self, rid: str) -> KvSnapshot | None:
        """The stream as it stands, by a copy of its page list; None when it is not open, or away."""
        account = self._ledger.accounts.find(rid)
        if account is None or account.away is not None:
            return None
        stream = self._ledger.stream(rid)
        used = self._ledger.pages_for(stream.stored) - stream.gone
        return KvSnapshot(stream.stored, stream.pages[:used], stream.gone, stream.epoch)

    def finished(self, snapshot: KvSnapshot) -> KvPublication:
        """The publication of that moment."""
        length, pages, gone, epoch = snapshot
        return KvPublication(length, tuple(pages), gone, epoch, self.descriptor)
