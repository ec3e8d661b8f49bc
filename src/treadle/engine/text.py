"""The text of a growing row of tokens: decoded as it comes, searched for stops, shown in safe parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

# What a decoder gives for bytes that are no character, or not yet one.
_UNFINISHED = "\ufffd"

# So many tokens tell a decoder what stands before a text.
_CONTEXT = 8


class GrowingText:
    """Decodes tokens one by one, each a few times and never all again.

    Args:
        decode: ids -> text, special tokens left out.
        stops: the text ends before the first of these that appears.
        after: tokens that stand before the text and are no part of it. Decoders join a word to what stands
            before it: alone, it would lose its space.

    Attributes:
        text: what was decoded; half a character at the end is missing until it is whole, or `finish`.
        stopped: whether a stop string appeared, and the text was cut before it.
    """

    def __init__(self, decode: Decode, stops: Sequence[str] = (), after: Sequence[int] = ()) -> None:
        self.text = ""
        self.stopped = False
        self._decode = decode
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=0)
        self._tokens = _whole_characters(decode, after[-_CONTEXT:])
        # The tokens from `_before` are decoded along, and the text of those up to `_read` is known already.
        self._before = 0
        self._read = len(self._tokens)
        self._shown = 0

    def add(self, token: int) -> None:
        """Take one more token in."""
        self._tokens.append(token)
        fresh = self._fresh()
        if not fresh.endswith(_UNFINISHED):
            self._grow(fresh)

    def finish(self) -> None:
        """No token follows: what is half a character stays one that is damaged."""
        if not self.stopped:
            self._grow(self._fresh())

    def take(self) -> str:
        """What was not taken yet, up to where a stop string could begin."""
        end = len(self.text) if self.stopped else len(self.text) - self._held_back()
        part = self.text[self._shown : end]
        self._shown = max(self._shown, end)
        return part

    def take_rest(self) -> str:
        """What was not taken yet, after `finish`."""
        part = self.text[self._shown :]
        self._shown = len(self.text)
        return part

    def _fresh(self) -> str:
        known = self._decode(self._tokens[self._before : self._read])
        return self._decode(self._tokens[self._before :])[len(known) :]

    def _grow(self, fresh: str) -> None:
        self._before, self._read = self._read, len(self._tokens)
        searched = max(0, len(self.text) - self._longest + 1)
        self.text += fresh
        found = [at for stop in self._stops if (at := self.text.find(stop, searched)) >= 0]
        if found:
            self.text, self.stopped = self.text[: min(found)], True

    def _held_back(self) -> int:
        """How long the end of the text is that begins a stop string."""
        sizes = range(min(self._longest - 1, len(self.text)), 0, -1)
        return next((size for size in sizes if self._begins_a_stop(self.text[-size:])), 0)

    def _begins_a_stop(self, end: str) -> bool:
        return any(stop.startswith(end) for stop in self._stops)


def _whole_characters(decode: Decode, tokens: Sequence[int]) -> list[int]:
    """Without the end of a character whose beginning is missing; nothing where the last one is half."""
    if decode(tokens).endswith(_UNFINISHED):
        return []
    begins = (at for at in range(len(tokens)) if not decode(tokens[at:]).startswith(_UNFINISHED))
    return list(tokens[next(begins, len(tokens)) :])
