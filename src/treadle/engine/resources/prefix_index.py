"""Which full pages hold which beginnings of text, so that a request with the same beginning reads them.

The key of a page is a hash of its tokens and of the key before it, so it stands for everything from the
beginning on. The index owns its pages too: they outlive their requests, and the ones that were matched
longest ago are let go of first.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Collection, Sequence
from hashlib import blake2b
from itertools import islice
from threading import Lock

from treadle.engine.resources.page_pool import PagePool

_ROOT = b""


def page_key(before: bytes, tokens: Sequence[int]) -> bytes:
    """The key of a page with these tokens, below 2**63 in size, behind the page of another key."""
    return blake2b(before + array("q", tokens).tobytes(), digest_size=16).digest()


class Chain:
    """The tokens of one request so far, and the keys of their full pages, each hashed once.

    Args:
        page_size: tokens of a page.
        every: tokens that may wait before they are hashed; 1 hashes a page as soon as it is full.
    """

    def __init__(self, page_size: int, every: int = 1) -> None:
        self._size = page_size
        self._every = every
        self._tokens = array("q")
        self._waiting = array("q")
        self.keys: list[bytes] = []

    def __len__(self) -> int:
        """Tokens, those that wait included."""
        return len(self._tokens) + len(self._waiting)

    def expect(self, start: int, tokens: Sequence[int]) -> bool:
        """What follows the first `start` tokens; returns whether that is news. Nothing is hashed twice."""
        self.flush()
        wanted = array("q", tokens)
        if self._tokens[start:] == wanted:
            return False
        del self._tokens[start:]
        del self.keys[start // self._size :]
        self._tokens.extend(wanted)
        self._hash()
        return True

    def extend(self, tokens: Sequence[int]) -> None:
        """What was generated."""
        self._waiting.extend(tokens)
        if len(self._waiting) >= self._every:
            self.flush()

    def flush(self) -> None:
        """Hash what waits."""
        if self._waiting:
            self._tokens.extend(self._waiting)
            del self._waiting[:]
            self._hash()

    def _hash(self) -> None:
        size = self._size
        for at in range(len(self.keys) * size, len(self._tokens) - size + 1, size):
            before = self.keys[-1] if self.keys else _ROOT
            self.keys.append(page_key(before, self._tokens[at : at + size]))


class PrefixIndex:
    """Key -> page of `pool`. Takes keys only: nothing is hashed while its lock is held."""

    def __init__(self, pool: PagePool) -> None:
        self.lock = Lock()
        self._pool = pool
        self._pages: OrderedDict[bytes, int] = OrderedDict()  # the longest unused first
        pool.evict = self.evict

    def match(self, keys: Sequence[bytes]) -> list[int]:
        """The pages of the leading keys that are known; they are now the last to be let go of."""
        pages = []
        with self.lock:
            for key in keys:
                if key not in self._pages:
                    break
                pages.append(self._pages[key])
            self._use(keys[: len(pages)])
        return pages

    def add(self, keys: Sequence[bytes], pages: Sequence[int]) -> None:
        """Own these pages under their keys; a key that is known keeps its page."""
        with self.lock:
            for key, page in zip(keys, pages, strict=True):
                if key not in self._pages and not self._pool.is_indexed(page):
                    self._pages[key] = page
                    self._pool.enter(page)
            self._use(keys)

    def evict(self, count: int) -> None:
        """Let go of so many pages that nobody else owns, or of all of them; the longest unused first."""
        with self.lock:
            idle = (key for key, page in self._pages.items() if self._pool.is_idle(page))
            for key in list(islice(idle, count)):
                self._pool.leave(self._pages.pop(key))

    def forget(self, pages: Collection[int]) -> None:
        """Let go of these pages, as far as they are here: nobody can match them any more."""
        with self.lock:
            for key in [key for key, page in self._pages.items() if page in pages]:
                self._pool.leave(self._pages.pop(key))

    def _use(self, keys: Sequence[bytes]) -> None:
        # From the end on: of one text the last page goes first, and leaves no page behind it unreachable.
        for key in reversed(keys):
            if key in self._pages:
                self._pages.move_to_end(key)
