"""Errors that rows cause, with the place of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from treadle.errors import ArgumentError, RunError
from treadle.kernel.unwind import add_note
from treadle.processing.account import place_of
from treadle.storage import RowBatch, WorkUnit


@contextmanager
def run_errors_at(place: str) -> Iterator[None]:
    """An error of the block that the rows caused becomes a RunError that begins with `place`."""
    try:
        yield
    except (ArgumentError, pa.ArrowException) as error:
        raise RunError(f"{place}: {error}") from error


@contextmanager
def errors_placed_in(batch: RowBatch) -> Iterator[None]:
    """Add the file and the lines of `batch` to an error of the block, which sees rows only.

    An error that the rows caused becomes a RunError; any other error gets a note.
    """
    try:
        with run_errors_at(place_of(batch)):
            yield
    except RunError:
        raise
    except Exception as error:
        add_note(error, f"while working on {place_of(batch)}")
        raise


def name_of(unit: WorkUnit) -> str:
    """The id of a unit, its file and its part: what messages call it on every backend."""
    part = "" if unit.part is None else f", part {unit.part[0]} to {unit.part[1]}"
    return f"{unit.id} ({unit.source or 'no file'}{part})"
