"""duckdb: one statement from file to file."""

from __future__ import annotations

from pathlib import Path

from bench.data.contender import BATCHES, KEYS
from bench.data.corpus import Corpus
from bench.data.rows import FEWEST, MOST

_CLEAN = r"""
SELECT id, text, key, topic, size, length(text) - length(replace(text, ' ', '')) + 1 AS words
FROM (
    SELECT * REPLACE (
        trim(regexp_replace(lower(nfc_normalize(text)), '[ \t\n]{{2,}}|[\t\n]', ' ', 'g'), ' ') AS text
    )
    FROM read_parquet('{files}')
)
WHERE words BETWEEN {fewest} AND {most}
"""
_COUNT = "SELECT {key}, count(*) AS rows FROM read_parquet('{files}') GROUP BY {key}"


def run(case: str, corpus: Corpus, out: Path) -> None:
    import duckdb

    out.mkdir()
    asked = (_CLEAN if case == BATCHES else _COUNT).format(
        files=corpus.parquet / "*.parquet", fewest=FEWEST, most=MOST, key="key" if case == KEYS else "topic"
    )
    # Without this setting it holds many rows back, which costs memory, to keep their order.
    duckdb.execute("SET preserve_insertion_order = false")
    duckdb.execute(f"COPY ({asked}) TO '{out / 'rows.parquet'}' (FORMAT parquet, COMPRESSION zstd)")
