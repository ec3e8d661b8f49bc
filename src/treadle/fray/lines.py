"""Pieces of output in, whole lines out."""

from __future__ import annotations

import codecs


class Lines:
    r"""Pieces in, whole lines out. After `\r` a line is written over, so its last state is what counts.

    Bytes are text in UTF-8, and get replacement marks where they are not.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode

    def feed(self, piece: str | bytes) -> list[str]:
        """The lines that `piece` completes."""
        text = piece if isinstance(piece, str) else self._decode(piece)
        if "\n" not in text and "\r" not in text:
            self._pieces.append(text)
            return []
        *whole, rest = "".join((*self._pieces, text)).split("\n")
        self._pieces = [_last_state(rest) + "\r" * rest.endswith("\r")]
        return [_last_state(line) for line in whole]

    def unfinished(self) -> str:
        """The line that has no end yet, as it stands."""
        return _last_state("".join(self._pieces))

    def rest(self) -> list[str]:
        """The unfinished line, if there is one; it is forgotten here."""
        line = self.unfinished()
        self._pieces = []
        return [line] if line.strip() else []


def _last_state(line: str) -> str:
    return next((state for state in reversed(line.split("\r")) if state), "")
