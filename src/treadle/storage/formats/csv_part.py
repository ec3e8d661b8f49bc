"""Writing csv: one part file, plain or compressed.

Records end with LF. What needs quotes has them, nothing else does; null is nothing at all, the empty text is
quoted. What could not be read back as it is, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from treadle.storage.compression import OutputStream, without_codec
from treadle.storage.csv_records import RECORD_BYTES, RECORD_LINES, Dialect, Records
from treadle.storage.dataset import Rows
from treadle.storage.formats.csv_options import CsvOptions
from treadle.storage.formats.view import as_table
from treadle.storage.lines import read_lines
from treadle.storage.schema import conform, widen

_MARK = "\ufeff"


def dialect_of(options: CsvOptions, path: str) -> Dialect:
    """How the file of that name is spelt."""
    usual = "\t" if without_codec(path).endswith(".tsv") else ","
    return Dialect((options.delimiter or usual).encode(), options.quote.encode())


class CsvPart:
    """One open csv file. When columns come later than the first rows, the file is written anew."""

    def __init__(self, path: Path, codec: str, options: CsvOptions) -> None:
        self._path = path
        self._codec = codec
        self._header = options.header
        self._dialect = dialect_of(options, path.name)
        self._delimiter = self._dialect.delimiter.decode()
        self._quote = self._dialect.quote.decode()
        self._special = [each for each in (self._delimiter, self._quote, "\n", "\r") if each]
        self._stream = OutputStream(path, codec)
        self.schema = pa.schema([])

    def write(self, rows: Rows) -> None:
        """Append one record a row.

        Raises ValueError naming the column at a value that would not come back: NaN or an infinity, a NUL, a
        null in the only column (a blank line is no row), a text that is too long, or needs quotes where there
        are none. pa.ArrowException when a schema changes other than by widening.
        """
        table = as_table(rows)
        wider = widen(self.schema, table.schema)
        if (reason := unwritable(wider)) is not None:
            raise ValueError(reason)
        if table.num_rows and not wider.names:
            raise ValueError("rows without columns have no form in csv")
        if wider.names != self.schema.names:
            self._start(wider.names)
        self.schema = wider
        for batch in conform(table, wider).to_batches(1024):
            self._append(batch)

    def close(self) -> None:
        """Finish the file and sync it."""
        self._stream.close()

    def abandon(self) -> None:
        """Let go of the file without another write, which could fail on a full disk."""
        self._stream.abandon()

    def _append(self, batch: pa.RecordBatch) -> None:
        named = zip(batch.schema.names, batch.columns, strict=True)
        columns = [self._texts(name, column.to_pylist()) for name, column in named]
        if len(columns) == 1 and "" in columns[0]:
            raise ValueError(f"column {batch.schema.names[0]}: a null in the only column has no form in csv")
        records = list(map(self._delimiter.join, zip(*columns, strict=True)))
        for record in records:
            self._check_length(record, batch.schema.names)
        self._stream.write("".join(f"{record}\n" for record in records).encode())

    def _start(self, names: Sequence[str]) -> None:
        """Write the header; when rows came before it, copy them after it, with null in the new columns."""
        known = len(self.schema.names)
        header = self._delimiter.join(self._name(each) for each in names)
        if not known:
            self._stream.write(f"{header}\n".encode() if self._header else b"")
            return
        self._stream.close()
        narrow = self._path.with_name(f"narrow-{self._path.name}")
        self._path.rename(narrow)
        self._stream = OutputStream(self._path, self._codec)
        self._stream.write(f"{header}\n".encode() if self._header else b"")
        more = self._dialect.delimiter * (len(names) - known) + b"\n"
        for index, record in enumerate(Records(read_lines(str(narrow)), self._dialect)):
            if index or not self._header:
                self._stream.write(record.raw + more)
        narrow.unlink()

    def _name(self, name: str) -> str:
        if not name:
            raise ValueError("a column without a name cannot be written as csv")
        return self._texts(name, [name])[0]

    def _texts(self, name: str, values: Sequence[object]) -> list[str]:
        try:
            return [self._text(value) for value in values]
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from error

    def _text(self, value: object) -> str:
        if value is None:
            return ""
        text = value if isinstance(value, str) else _spelt(value)
        if "\0" in text:
            raise ValueError("a NUL has no form in csv")
        if text and not text.startswith(_MARK) and not any(each in text for each in self._special):
            return text
        if not self._quote:
            raise ValueError(f"{text[:60]!r} needs quotes, and the option quote says that there are none")
        return f"{self._quote}{text.replace(self._quote, self._quote * 2)}{self._quote}"

    def _check_length(self, record: str, names: Sequence[str]) -> None:
        """See that the reader does not take it for one whose quote is not closed."""
        breaks = record.count("\n")
        if breaks and (breaks >= RECORD_LINES or len(record.encode()) > RECORD_BYTES):
            raise ValueError(
                f"a row of {', '.join(names)} has more than {RECORD_LINES} lines or {RECORD_BYTES} bytes: "
                "too long for a csv record with line breaks in it"
            )


def _spelt(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no form in csv")
    return repr(value)


def unwritable(schema: pa.Schema) -> str | None:
    """Why rows of that schema have no form in csv, naming the column; None when they have one."""
    wrong = next((each for each in schema if not _is_plain(each.type)), None)
    return None if wrong is None else f"column {wrong.name}: {wrong.type} has no form in csv"


def _is_plain(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_string,
        pa.types.is_large_string,
    )
    return any(test(kind) for test in tests)
