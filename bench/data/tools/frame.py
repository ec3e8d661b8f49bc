"""polars: one lazy frame from file to file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.data.contender import BATCHES, KEYS
from bench.data.corpus import Corpus
from bench.data.rows import FEWEST, MOST


def run(case: str, corpus: Corpus, out: Path) -> None:
    import polars as pl

    out.mkdir()
    rows = pl.scan_parquet(corpus.parquet / "*.parquet")
    made = _cleaned(rows) if case == BATCHES else _counted(rows, "key" if case == KEYS else "topic")
    made.sink_parquet(out / "rows.parquet", compression="zstd")


def _cleaned(rows: Any) -> Any:
    import polars as pl

    text = pl.col("text").str.normalize("NFC").str.to_lowercase()
    text = text.str.replace_all("[ \t\n]{2,}|[\t\n]", " ").str.strip_chars(" ")
    words = pl.col("text").str.count_matches(" ", literal=True).cast(pl.Int64) + 1
    return (
        rows.with_columns(text=text)
        .with_columns(words=words)
        .filter(pl.col("words").is_between(FEWEST, MOST))
    )


def _counted(rows: Any, key: str) -> Any:
    import polars as pl

    return rows.group_by(key).agg(rows=pl.len().cast(pl.Int64))
