"""Formats by name: those of other packages next to the built-in ones."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from treadle.errors import ArgumentError, UnknownNameError
from treadle.ext import Format, OutputSpec, WriteBackend, register_format
from treadle.storage.formats.backends import check_options, known_formats, write_backend_for
from treadle.storage.formats.csv_options import CsvOptions
from treadle.storage.formats.csv_part import CsvPart
from treadle.storage.formats.delimited import CSV
from treadle.storage.part import staged_file
from treadle.storage.union import Source, rewritten, unite


@dataclasses.dataclass(frozen=True)
class Options:
    """Of the format bars."""

    bar: str = "|"


def open_part(path: Path, codec: str, options: Mapping[str, object]) -> CsvPart:
    return CsvPart(path, codec, CsvOptions(delimiter=Options(**options).bar))  # type: ignore[arg-type]


BARS = register_format(
    Format(
        "bars",
        CSV.reader,
        WriteBackend({None: (".bars", "none")}, lambda _: None, open_part, keeps_types=False),
    ),
    Options,
)
HEARD = register_format(Format("heard", CSV.reader))


def test_the_options_of_a_registered_format_are_checked() -> None:
    check_options("bars", {"bar": "/"}, reading=True)
    with pytest.raises(ArgumentError, match="option 'ba' of the format bars: expected one of bar; did you"):
        check_options("bars", {"ba": "/"}, reading=False)
    with pytest.raises(ArgumentError, match="expected no option"):
        check_options("heard", {"bar": "/"}, reading=True)


def test_a_part_file_is_opened_with_the_options_of_the_output(tmp_path: Path) -> None:
    path = tmp_path / "part.bars"
    part = write_backend_for("bars").open_part(path, OutputSpec("bars", "rows", options={"bar": "/"}))
    part.write(pa.table({"a": [1], "b": [2]}))
    part.close()
    assert path.read_text() == "a/b\n1/2\n"


def test_a_format_without_a_writer_is_only_read() -> None:
    assert "heard" in known_formats()
    assert "heard" not in known_formats(writing=True)
    with pytest.raises(UnknownNameError, match=r"format to write 'heard'.*bars"):
        write_backend_for("heard")
    with pytest.raises(UnknownNameError, match="format to write 'heard'"):
        check_options("heard", {}, reading=False)


def test_the_same_format_may_be_registered_again_and_another_one_not() -> None:
    assert register_format(BARS, Options) is BARS
    assert register_format(CSV, CsvOptions) is CSV
    with pytest.raises(ArgumentError, match="the format 'csv' is already registered"):
        register_format(Format("csv", CSV.reader))


def test_a_registered_format_without_types_says_so_and_files_of_other_types_stay(tmp_path: Path) -> None:
    """No format has to be known by its name for its files to get one schema."""
    spec = OutputSpec("bars", "rows", options={"bar": ","})
    sources = []
    for at, table in enumerate((pa.table({"a": [1]}), pa.table({"a": [1.5]}), pa.table({"b": [2]}))):
        path = tmp_path / f"{at}.bars"
        part = write_backend_for("bars").open_part(path, spec)
        part.write(table)
        part.close()
        sources.append(Source(staged_file("rows", path, 0, 1, table.schema), f"unit {at}"))
    union = unite(sources, spec)
    again = [Path(rewritten(each, union, spec).path) for each in sources[1:]]
    assert [each.read_text() for each in again] == ["a,b\n1.5,\n", "a,b\n,2\n"]
    one = unite(sources[:2], spec)
    assert rewritten(sources[0], one, spec) is sources[0].file


@pytest.mark.parametrize(("given", "got"), [({}, "neither"), ({"table": "a", "query": "b"}, "both")])
def test_options_that_do_not_go_together_are_told_in_the_words_of_the_format(
    given: dict[str, str], got: str
) -> None:
    told = f"^the format postgres: expected one of the options table and query, got {got}$"
    with pytest.raises(ArgumentError, match=told):
        check_options("postgres", given, reading=True)
