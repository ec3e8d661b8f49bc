"""From a path to text: everything that can be wrong with a file before its YAML is looked at."""

from __future__ import annotations

import re
from pathlib import Path

from treadle.manifest.places import Place
from treadle.manifest.problems import Problems

MAX_BYTES = 1 << 20
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_text(path: Path, start: Place, problems: Problems) -> str | None:
    """The text of a UTF-8 file of at most `MAX_BYTES`; otherwise None, and `problems` knows why.

    `start` is the first place of the file; problems are put there or at the character that is wrong.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        problems.unreadable(start, (), "a readable file", _reason(error))
        return None
    if len(raw) > MAX_BYTES:
        problems.unreadable(start, (), f"a file of at most {MAX_BYTES:,} bytes", "a larger one")
        return None
    return _decoded(raw, start, problems)


def _decoded(raw: bytes, start: Place, problems: Problems) -> str | None:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.object` lacks the byte order mark that utf-8-sig took off, so positions agree with it.
        before = error.object[: error.start].decode("utf-8")
        found = f"byte 0x{error.object[error.start]:02x}"
        problems.unreadable(place_after(before, start), (), "UTF-8 text", found)
        return None
    if stray := UNPRINTABLE.search(text):
        place = place_after(text[: stray.start()], start)
        problems.unreadable(place, (), "printable text", f"the character U+{ord(stray[0]):04X}")
        return None
    return text


def place_after(before: str, start: Place) -> Place:
    """The place of the character that follows `before` in the file."""
    lines = before.split("\n")
    return Place(start.file, len(lines), len(lines[-1]) + 1, start.chain)


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file"
        case IsADirectoryError():
            return "a directory"
        case _:
            return error.strerror or str(error)
