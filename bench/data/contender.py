"""Who takes part in which case. Modules of tools are imported in the children alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ROWS, BATCHES, KEYS, SKEWED = "rows", "batches", "keys", "skewed"


@dataclass(frozen=True)
class Contender:
    """One tool, set up in one way; `package` is the distribution whose version is told, None that of Python.

    A peer runs in the environment of the peers.
    """

    case: str
    name: str
    module: str
    package: str | None
    settings: str
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_peer(self) -> bool:
        """Whether it lives in the environment of the peers."""
        return self.package not in (None, "treadle")

    @property
    def is_ours(self) -> bool:
        """Whether it is treadle."""
        return self.package == "treadle"


PROCESSES = {"parallelism": "backend: processes, workers: 2"}
WIDE = {"parallelism": "batch_rows: 65536"}

_PLAIN = "orjson.loads, the two functions, orjson.dumps, one line after another"
_TROVE = "JsonlReader, a function over the documents, JsonlWriter with an adapter of its own"

CONTENDERS = (
    Contender(ROWS, "treadle", "ours", "treadle", "inprocess: one unit after another"),
    Contender(ROWS, "treadle, 2 processes", "ours", "treadle", "backend: processes, workers: 2", PROCESSES),
    Contender(ROWS, "plain loop", "plain", None, _PLAIN),
    Contender(ROWS, "two plain loops", "plain", None, "each has half of the files", {"loops": 2}),
    Contender(ROWS, "datatrove", "trove", "datatrove", f"{_TROVE}; workers=1", {"workers": 1}),
    Contender(ROWS, "datatrove, 2 workers", "trove", "datatrove", "the same; workers=2", {"workers": 2}),
    Contender(ROWS, "Ray Data", "ray_dataset", "ray", "read_json, map, filter, write_json; num_cpus=2"),
    Contender(BATCHES, "treadle", "ours", "treadle", "map_batches, a function with pyarrow.compute"),
    Contender(BATCHES, "treadle, batches of 65,536", "ours", "treadle", "the same; batch_rows: 65536", WIDE),
    Contender(BATCHES, "polars", "frame", "polars", "scan_parquet, sink_parquet; its own threads"),
    Contender(BATCHES, "duckdb", "query", "duckdb", "one COPY of a SELECT; its own threads"),
    *(
        Contender(case, *words)
        for case in (KEYS, SKEWED)
        for words in (
            ("treadle", "ours", "treadle", "reduce: the aggregate count"),
            ("treadle, batches of 65,536", "ours", "treadle", "the same; batch_rows: 65536", WIDE),
            ("polars", "frame", "polars", "scan_parquet, group_by, len, sink_parquet; its own threads"),
            ("duckdb", "query", "duckdb", "GROUP BY, count(*); its own threads"),
        )
    ),
)


def contenders(case: str) -> tuple[Contender, ...]:
    """Those of one case."""
    return tuple(each for each in CONTENDERS if each.case == case)


def contender(case: str, name: str) -> Contender:
    """One of them."""
    return next(each for each in contenders(case) if each.name == name)
