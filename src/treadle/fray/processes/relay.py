"""What a job prints in another process, passed on to whoever would have heard it here."""

from __future__ import annotations

import codecs
import sys

from treadle.fray.capture import Listener, Stream, pass_on

_LONGEST = 1 << 16  # characters of a line that is not passed on before it has ended


class Relay:
    """Passes on whole lines, so that those of several jobs do not mix. For one thread."""

    __slots__ = ("_decoders", "_heard_by", "_unended")

    def __init__(self, heard_by: Listener | None) -> None:
        self._heard_by = heard_by
        self._decoders: dict[Stream, codecs.IncrementalDecoder] | None = None
        self._unended: dict[Stream, str] = {}

    def write(self, stream: Stream, data: bytes) -> None:
        """Take a piece of output."""
        if self._decoders is None:
            self._decoders = {}
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = self._unended.get(stream, "") + decoder.decode(data)
        end = len(text) if len(text) > _LONGEST else text.rfind("\n") + 1
        self._unended[stream] = text[end:]
        self._pass_on(stream, text[:end])

    def close(self) -> None:
        """Pass on what is left."""
        for stream, text in self._unended.items():
            self._pass_on(stream, text)
        self._unended = {}

    def _pass_on(self, stream: Stream, text: str) -> None:
        if not text:
            return
        try:
            pass_on(self._heard_by, stream, text, getattr(sys, stream))
        except (OSError, ValueError):
            return  # the output of this process is closed, which is no fault of the job; its log has the text
