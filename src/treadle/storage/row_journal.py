"""Results of single rows, kept one by one as they come: for work in which a row takes long.

A file that only grows. A line holds a checksum, the key of a row, and its result as JSON; one whose checksum
does not fit, as a killed process or a loss of power leaves them, counts for nothing and costs no other row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from treadle.storage.atomic import write_failure

_SYNC_EVERY = 64
"""Lines after which the disk is waited for: only a loss of power needs that, and it takes milliseconds."""


class RowJournal:
    """The journal at `path`, open for more; a torn end of it is cut off. For one thread.

    Of what was there when it was opened it has the keys in memory, some 200 bytes a row; the results stay in
    the file.

    Raises:
        RunError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        self._unsynced = 0
        with write_failure(path):
            self._lines = path.open("ab", buffering=0)
            self._reader = path.open("rb")
            self._lines.truncate(self._index())

    def find(self, key: str) -> Any | None:
        """The result that an earlier run kept under that key, the first of several; None: there is none.

        What is added meanwhile is not found, so that what a run does depends on no race of its rows.
        """
        place = self._places.get(key)
        if place is None:
            return None
        self._reader.seek(place)
        return json.loads(self._reader.readline().split(b" ", 2)[2])

    def add(self, key: str, result: object) -> None:
        """Keep a result: from now on, whatever becomes of this process. `key` has no spaces.

        Raises:
            RunError: the file cannot be written.
        """
        content = f"{key} {json.dumps(result)}\n".encode()
        line = b"%08x %b" % (crc32(content), content)
        with write_failure(self._path):
            if self._lines.write(line) != len(line):
                raise OSError("only a part of a line could be written")
            self._unsynced += 1
            if self._unsynced == _SYNC_EVERY:
                self._sync()

    def close(self) -> None:
        """Let go of the file, which is on the disk then; harmless the second time."""
        if not self._lines.closed:
            with self._reader, self._lines, write_failure(self._path):
                self._sync()

    def _sync(self) -> None:
        os.fsync(self._lines.fileno())
        self._unsynced = 0

    def _index(self) -> int:
        """Note where each row stands; returns where the last whole line ends."""
        end = 0
        for key, start, end in _whole_lines(self._reader):  # noqa: B007 - the last one's end is what counts
            self._places.setdefault(key, start)
        return end


def rows_in(path: Path) -> int:
    """How many rows the journal at `path` has, whoever is writing it; 0 when it is not there."""
    with suppress(FileNotFoundError), path.open("rb") as lines:
        return len({key for key, _, _ in _whole_lines(lines)})
    return 0


def _whole_lines(lines: Iterator[bytes]) -> Iterator[tuple[str, int, int]]:
    """The key of each line that is not damaged, and where the line begins and ends."""
    end = 0
    for line in lines:
        start, end = end, end + len(line)
        sum_and_rest = line.split(b" ", 1)
        if len(sum_and_rest) == 2 and sum_and_rest[0] == b"%08x" % crc32(sum_and_rest[1]):
            yield sum_and_rest[1].split(b" ", 1)[0].decode(), start, end
