"""The options of the postgres format."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.errors import ArgumentError


@dataclass(frozen=True)
class PostgresOptions:
    """What is read or written: `table`, as `name` or `schema.name`, or for reading a `query`."""

    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            got = "neither" if self.table is None else "both"
            raise ArgumentError(f"expected one of the options table and query, got {got}")
