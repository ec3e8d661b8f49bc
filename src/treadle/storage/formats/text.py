"""The text format: each line of a file is a row of one column, plain, gzip or zstd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from treadle.storage import lines as line_reading
from treadle.storage.columns import Columns
from treadle.storage.compression import OutputStream, open_stream, read_full
from treadle.storage.dataset import RAW_BYTES, BadRow, Dataset, RowBatch, Rows, WorkUnit
from treadle.storage.formats.format import Format, ReadBackend, WriteBackend
from treadle.storage.formats.options import parse_options
from treadle.storage.formats.text_options import TextOptions
from treadle.storage.formats.view import as_table
from treadle.storage.line_numbers import Place
from treadle.storage.lines import Lines, read_lines
from treadle.storage.schema import widen

_MARK = b"\xef\xbb\xbf"


def read(dataset: Dataset, unit: WorkUnit, batch_rows: int) -> Iterator[RowBatch]:
    """The rows of a unit, good and bad ones, `batch_rows` at a time; no batch for a file without rows.

    A line ends with LF or CR LF; an empty one is a row too. Raises ArgumentError for an option that is
    unknown or has a wrong value.
    """
    options = parse_options("text", TextOptions, dataset.options)
    wanted = (options.column,) if dataset.columns is None else dataset.columns
    types = dict.fromkeys(wanted, "string") | dict(dataset.types)
    columns = Columns(wanted, types, dataset.missing)
    for lines in [_whole(unit.source)] if options.whole else read_lines(unit.source, batch_rows):
        yield _batch(unit.source, lines, columns, options)


def _whole(path: str) -> Lines:
    """The file as one line. A byte order mark at its start is dropped."""
    limit = line_reading.MAX_LINE_BYTES
    with open_stream(path) as stream:
        data = read_full(stream, limit + 1)
        broken = None
        if stream.broken is not None:
            broken = ("truncated-stream", stream.broken)
        if len(data) > limit:
            broken = ("too-long", f"longer than {limit} bytes")
    text = data.removeprefix(_MARK)
    return Lines(Place(path, 0), 0, len(data) - len(text), [text], len(text), broken)


def _batch(source: str, lines: Lines, columns: Columns, options: TextOptions) -> RowBatch:
    places: list[int] = []
    texts: list[str] = []
    bad: dict[int, tuple[str, str]] = {}
    for index, raw in enumerate(lines.raws):
        broken = lines.broken if index == len(lines.raws) - 1 else None
        if (fault := broken or _fault(raw)) is not None:
            bad[index] = fault
        else:
            places.append(index)
            texts.append(raw.decode() if options.whole else _ended(raw).decode())
    checked = columns.check([{options.column: text} for text in texts])
    bad |= {places[each.index]: (each.kind, each.reason) for each in checked.misfits}
    kept = lines.numbers_at([at for at in places if at not in bad])
    found = tuple(_bad_row(source, lines, at, bad[at]) for at in sorted(bad))
    return RowBatch(kept, source, found, given=checked.records, schema=columns.schema, text_bytes=lines.size)


def _ended(raw: bytes) -> bytes:
    """A line without its end."""
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def _fault(raw: bytes) -> tuple[str, str] | None:
    if b"\0" in raw:
        return "nul", f"a NUL byte at byte {raw.index(0)} of the row"
    if raw.isascii():
        return None
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return "not-utf8", f"not UTF-8 at byte {error.start} of the row: {error.reason}"
    return None


def _bad_row(source: str, lines: Lines, at: int, fault: tuple[str, str]) -> BadRow:
    raw = _ended(lines.raws[at])[:RAW_BYTES]
    return BadRow(source, lines.numbers[at], fault[1], raw, lines.offset_at(at), fault[0])


class TextPart:
    """One open text file, plain or compressed, of rows with one column of text, whatever its name."""

    def __init__(self, path: Path, codec: str, options: TextOptions) -> None:
        if options.whole:
            raise ValueError("option 'whole' of the format text is for reading only")
        self._stream = OutputStream(path, codec)
        self._begun = False
        self.schema = pa.schema([])

    def write(self, rows: Rows) -> None:
        """Append one line a row.

        Raises ValueError naming the column at a null, a NUL, or a text with a line break, which would come
        back as two rows; and when there is another column than the one.
        """
        table = as_table(rows)
        wider = widen(self.schema, table.schema)
        if (reason := unwritable(wider)) is not None:
            raise ValueError(reason)
        if table.num_rows and not wider.names:
            raise ValueError("rows without a column have no form in text")
        self.schema = wider
        for batch in table.to_batches(1024):
            self._append(wider.names[0], batch.column(0).to_pylist())

    def close(self) -> None:
        """Finish the file and sync it."""
        self._stream.close()

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        self._stream.abandon()

    def _append(self, name: str, values: Sequence[str | None]) -> None:
        data = b"".join(_line(name, value) for value in values)
        if not self._begun and data.startswith(_MARK):
            self._stream.write(_MARK)  # the reader drops the first mark, and this one is part of the text
        self._begun = self._begun or bool(data)
        self._stream.write(data)


def _line(name: str, value: str | None) -> bytes:
    if value is None:
        raise ValueError(f"column {name}: a null has no form in text")
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"column {name}: a text with a line break or a NUL would not come back as one row")
    try:
        return f"{value}\n".encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"column {name}: {error}") from error


def unwritable(schema: pa.Schema) -> str | None:
    """Why rows of that schema have no form in text, naming the column; None when they have one."""
    if len(schema) > 1:
        return f"column {schema.names[1]}: text holds one column, found {', '.join(schema.names)}"
    wrong = next((each for each in schema if not _is_text(each.type)), None)
    return None if wrong is None else f"column {wrong.name}: expected string, found {wrong.type}"


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)


def _open(path: Path, codec: str, options: Mapping[str, object]) -> TextPart:
    return TextPart(path, codec, parse_options("text", TextOptions, options))


TEXT = Format(
    name="text",
    reader=ReadBackend(suffixes=(".txt", ".txt.gz", ".txt.zst"), read=read),
    writer=WriteBackend(
        codecs={
            None: (".txt", "none"),
            "none": (".txt", "none"),
            "gzip": (".txt.gz", "gzip"),
            "zstd": (".txt.zst", "zstd"),
        },
        unwritable=unwritable,
        open=_open,
        keeps_types=False,
    ),
)
