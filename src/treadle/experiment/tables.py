"""Tables in the folder of a step: write one whole, read one whole or shard by shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from treadle.artifacts import Artifact
from treadle.execution import StepContext
from treadle.storage import Dataset, OutputSpec, Session, WorkUnit, list_units, read_table


def save(ctx: StepContext, name: str, shards: Iterable[pa.Table]) -> None:
    """Write the table `name` into the step's folder, one parquet file a shard; it appears whole."""
    folder = f"{ctx.output_path}/{name}"
    with Session({name: OutputSpec("parquet", folder)}) as session:
        for index, shard in enumerate(shards):
            session.write(name, WorkUnit(f"{index:05}-{name}", index, folder, 0), shard)
        session.commit()


def load(artifact: Artifact, name: str) -> pa.Table:
    """The whole table `name` of an artifact."""
    return read_table(_dataset(artifact, name))


def load_shards(artifact: Artifact, name: str) -> Iterator[pa.Table]:
    """The table `name` of an artifact, one file at a time, in order."""
    for unit in list_units(_dataset(artifact, name)):
        yield read_table(Dataset("parquet", unit.source))


def look_up(artifact: Artifact, name: str, value: str) -> dict[str, Any]:
    """Row id -> its `value`, from the columns of a table."""
    table = read_table(replace(_dataset(artifact, name), columns=("id", value)))
    return dict(zip(column(table, "id"), column(table, value), strict=True))


def column(table: pa.Table, name: str) -> list[Any]:
    """The values of a column."""
    return list(table[name].to_pylist())


def _dataset(artifact: Artifact, name: str) -> Dataset:
    return Dataset("parquet", f"{artifact.path}/{name}")
