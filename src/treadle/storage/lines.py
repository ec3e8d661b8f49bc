"""The lines of a file, or of a part of it, many at a time and in bounded memory, through its decompressor.

A stream that breaks in the middle (a gzip file that was cut, or is corrupt) ends with the reason in place
of the next line; every whole line before the break is given. A failing disk or network is raised as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

from treadle.storage.compression import Stream, open_stream, read_full
from treadle.storage.dataset import RAW_BYTES
from treadle.storage.line_numbers import LineNumbers, Place

MAX_LINE_BYTES = 256 * 2**20
"""A longer line is a broken line, read past without being held."""

BLOCK_BYTES = 256 * 2**10
BATCH_BYTES = 8 * 2**20
"""Lines are handed out early at this much text, so that memory does not grow with the length of rows."""

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Lines:
    """Some lines in a row, each with its b"\\n" if it has one.

    `start` is where the lines of the file or of its part begin, `before` how many of them come before these,
    `offset` the byte where these begin in the uncompressed file, `size` how many bytes they are.
    `broken`: the kind and the reason why the last of them could not be read whole.
    """

    start: Place
    before: int
    offset: int
    raws: list[bytes]
    size: int
    broken: tuple[str, str] | None = None

    def numbers_at(self, indices: Sequence[int]) -> Sequence[int]:
        """The numbers of some of the lines, from 1 in the file."""
        # The numbers in a whole file are known, those in a part are counted when they are asked for.
        before = self.before if self.start.byte else self.before + 1
        if isinstance(indices, range):
            steps: Sequence[int] = range(before + indices.start, before + indices.stop)
        else:
            steps = [before + index for index in indices]
        return LineNumbers(self.start, steps) if self.start.byte else steps

    @property
    def numbers(self) -> Sequence[int]:
        """The number of each line."""
        return self.numbers_at(range(len(self.raws)))

    def offset_at(self, index: int) -> int:
        """The byte where a line begins."""
        return self.offset + sum(map(len, self.raws[:index]))


def read_lines(
    path: str, max_lines: int = 1024, part: tuple[int, int] | None = None, max_line: int = MAX_LINE_BYTES
) -> Iterator[Lines]:
    """The lines of a file, `max_lines` at a time; of a part, those that begin in it.

    A byte order mark at the start of the file is dropped. A part needs a file without compression.
    """
    first, end = part or (0, None)
    with open_stream(path, max(0, first - 1)) as stream:
        blocks = _blocks(stream, min(BLOCK_BYTES, max_line))
        if first:
            first, blocks = _from_line(blocks, first)
        cutter = _Cutter(max_lines, max_line, Place(path, first))
        yield from cutter.cut(_until(blocks, first, end), stream)


def _blocks(stream: Stream, size: int) -> Iterator[bytes]:
    while block := read_full(stream, size):
        yield block


def _from_line(blocks: Iterator[bytes], first: int) -> tuple[int, Iterator[bytes]]:
    """Where the first line begins that begins at `first` or later, and the blocks from there."""
    place = first - 1
    for block in blocks:
        at = block.find(b"\n")
        if at >= 0:
            return place + at + 1, _chained(block[at + 1 :], blocks)
        place += len(block)
    return place, iter(())


def _chained(block: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    if block:
        yield block
    yield from blocks


def _until(blocks: Iterator[bytes], offset: int, end: int | None) -> Iterator[bytes]:
    """The blocks up to the end of the last line that begins before `end`."""
    if end is not None and offset >= end:
        return
    for block in blocks:
        at = -1 if end is None else block.find(b"\n", max(0, end - 1 - offset))
        if at >= 0:
            yield block[: at + 1]
            return
        yield block
        offset += len(block)


class _Cutter:
    """Cuts blocks into lines, and counts where they are."""

    def __init__(self, max_lines: int, max_line: int, start: Place) -> None:
        self._max_lines = max_lines
        self._max_line = max_line
        self._start = start
        self._before = 0
        self._offset = start.byte
        self._held: list[bytes] = []
        self._size = 0
        self._pieces: list[bytes] = []  # of a line whose end is not read yet
        self._length = 0

    def cut(self, blocks: Iterator[bytes], stream: Stream) -> Iterator[Lines]:
        for index, block in enumerate(blocks):
            if index == 0 and self._offset == 0 and block.startswith(_MARK):
                block, self._offset = block[len(_MARK) :], len(_MARK)
            yield from self._take(BytesIO(block).readlines())
        if stream.broken is not None:
            yield from self._rest()
            cut_line = b"".join(self._pieces)[:RAW_BYTES]
            yield self._taken([cut_line], ("truncated-stream", stream.broken))
        elif self._length:
            yield from self._end_line()
        yield from self._rest()

    def _take(self, lines: list[bytes]) -> Iterator[Lines]:
        """The lines of a block: the first may be the rest of one, the last may lack its end."""
        if lines and self._length:
            self._add(lines[0])
            if not lines.pop(0).endswith(b"\n"):
                return
            yield from self._end_line()
        if lines and not lines[-1].endswith(b"\n"):
            self._add(lines.pop())
        self._held += lines
        self._size += sum(map(len, lines))
        yield from self._full()

    def _add(self, piece: bytes) -> None:
        if self._length <= self._max_line:
            self._pieces.append(piece)
        self._length += len(piece)

    def _end_line(self) -> Iterator[Lines]:
        raw, length = b"".join(self._pieces), self._length
        self._pieces, self._length = [], 0
        # The line break is not part of what is limited.
        if len(raw) == length and length <= self._max_line + raw.endswith(b"\n"):
            self._held.append(raw)
            self._size += length
            yield from self._full()
            return
        yield from self._rest()
        raw = raw[: min(RAW_BYTES, self._max_line)]
        yield self._taken([raw], ("too-long", f"longer than {self._max_line} bytes"))
        self._offset += length - len(raw)

    def _full(self) -> Iterator[Lines]:
        whole = len(self._held) // self._max_lines * self._max_lines
        for start in range(0, whole, self._max_lines):
            yield self._taken(self._held[start : start + self._max_lines])
        if whole:
            self._held = self._held[whole:]
            self._size = sum(map(len, self._held))
        if self._size >= BATCH_BYTES:
            yield from self._rest()

    def _rest(self) -> Iterator[Lines]:
        held, self._held, self._size = self._held, [], 0
        for start in range(0, len(held), self._max_lines):
            yield self._taken(held[start : start + self._max_lines])

    def _taken(self, raws: list[bytes], broken: tuple[str, str] | None = None) -> Lines:
        lines = Lines(self._start, self._before, self._offset, raws, sum(map(len, raws)), broken)
        self._before += len(raws)
        self._offset += lines.size
        return lines
