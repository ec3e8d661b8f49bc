"""One step of a chain of row transforms, as two functions: of Python records, of a record batch.

A step says which row each of its rows was made of, by position among the rows it got, so that a chain can
account for every row it was given. A step may have one of the two functions only: then whoever runs the chain
turns the rows into the other form.

The modules of row transforms load pyarrow where they meet rows: their options are read, and checked, without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from treadle.domain.result import Reject

if TYPE_CHECKING:
    import pyarrow as pa

Record = Mapping[str, Any]
RowsOfStep: TypeAlias = "pa.RecordBatch | Sequence[Record]"
Values = Sequence[Any]
Kind = Literal["string", "int64"]
RowFunction = Callable[..., object]


@dataclass(frozen=True)
class Stepped:
    """The rows that a step gave.

    `origins` has, for each row, the position of the row it was made of, in ascending order; None: nobody
    knows. `extra` are further sums by name.
    """

    rows: RowsOfStep
    origins: Sequence[int] | None
    rejects: tuple[Reject, ...] = ()
    extra: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RowStep:
    """A step; `needs` are the columns without which none of the rows can be used.

    `many`: a row may become several.
    """

    records: Callable[[Sequence[Record]], Stepped] | None = None
    batches: Callable[[pa.RecordBatch], Stepped] | None = None
    needs: tuple[str, ...] = ()
    many: bool = False


@dataclass(frozen=True)
class Computed:
    """What was made of some columns: new values by column, or which rows are kept.

    `faults` says why a row cannot be used, by position; its values mean nothing.
    """

    values: Mapping[str, Values] = field(default_factory=dict)
    kept: Sequence[bool] | None = None
    faults: Mapping[int, str] = field(default_factory=dict)


def column_step(
    columns: Sequence[str],
    compute: Callable[[Mapping[str, Values]], Computed],
    kind: Kind | None = None,
) -> RowStep:
    """A step that reads `columns` as Python values and adds, replaces, or keeps what `compute` says.

    `kind` is the type of the columns that it makes. What it does is the same for records and for batches.
    """

    def records(rows: Sequence[Record]) -> Stepped:
        computed = compute({name: [row.get(name) for row in rows] for name in columns})
        origins = _usable(computed, len(rows))
        made = computed.values
        if not made:
            return Stepped(rows_at(rows, origins), origins, _rejects(computed))
        given = [{**rows[at], **{name: values[at] for name, values in made.items()}} for at in origins]
        return Stepped(given, origins, _rejects(computed))

    def batches(rows: pa.RecordBatch) -> Stepped:
        computed = compute({name: rows.column(name).to_pylist() for name in columns})
        origins = _usable(computed, rows.num_rows)
        kept = rows if len(origins) == rows.num_rows else _taken(rows, origins)
        for name, values in computed.values.items():
            kept = _with_column(kept, name, [values[at] for at in origins], kind)
        return Stepped(kept, origins, _rejects(computed))

    return RowStep(records, batches, tuple(columns))


def texts(values: Mapping[str, Values]) -> dict[int, str]:
    """Why rows cannot be used whose values are neither strings nor null, by position."""
    return {
        at: f"{name} is {type(value).__name__}, expected a string"
        for name, column in values.items()
        for at, value in enumerate(column)
        if not (value is None or isinstance(value, str))
    }


def records_of(rows: RowsOfStep) -> Sequence[Record]:
    """The rows as Python records."""
    return rows if isinstance(rows, Sequence) else rows.to_pylist()


def rows_at(rows: RowsOfStep, positions: Sequence[int]) -> RowsOfStep:
    """Some of the rows, in the same form; all of them, which cost nothing, when there are as many."""
    if len(positions) == len(rows):
        return rows
    if isinstance(rows, Sequence):
        return [rows[at] for at in positions]
    return _taken(rows, positions)


def joined_rows(parts: Sequence[RowsOfStep]) -> RowsOfStep:
    """The rows of all parts: a batch when all are batches, with null for what one of them lacks.

    Raises pa.ArrowException when a column has two types.
    """
    batches = [each for each in parts if not isinstance(each, Sequence)]
    if len(batches) < len(parts) or not parts:
        return [row for each in parts for row in records_of(each)]
    import pyarrow as pa  # here: see above

    table = pa.concat_tables(map(pa.table, batches), promote_options="default").combine_chunks()
    return table.to_batches()[0]


def _taken(rows: pa.RecordBatch, positions: Sequence[int]) -> pa.RecordBatch:
    import pyarrow as pa  # here: see above

    return rows.take(pa.array(positions, pa.int64()))


def _usable(computed: Computed, rows: int) -> list[int]:
    kept = range(rows) if computed.kept is None else (at for at in range(rows) if computed.kept[at])
    return [at for at in kept if at not in computed.faults]


def _rejects(computed: Computed) -> tuple[Reject, ...]:
    return tuple(Reject(at, computed.faults[at], "wrong-type") for at in sorted(computed.faults))


def _with_column(rows: pa.RecordBatch, name: str, values: Values, kind: Kind | None) -> pa.RecordBatch:
    import pyarrow as pa  # here: see above

    made = None if kind is None else pa.type_for_alias(kind)
    at = rows.schema.get_field_index(name)
    if at < 0:
        return rows.append_column(name, pa.array(values, made))
    present = rows.schema.field(name).type
    wide = kind == "string" and pa.types.is_large_string(present)
    return rows.set_column(at, name, pa.array(values, present if wide else made))
