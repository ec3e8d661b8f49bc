"""Ray Data on a cluster of its own, whose start is part of the time."""

from __future__ import annotations

from pathlib import Path

from bench.data.corpus import Corpus
from bench.data.rows import clean, is_kept


def run(_: str, corpus: Corpus, out: Path) -> None:
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.read_json(str(corpus.jsonl), file_extensions=["jsonl"])
    rows.map(clean).filter(is_kept).write_json(str(out))
    ray.shutdown()
