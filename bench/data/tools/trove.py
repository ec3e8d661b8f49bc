"""datatrove: a pipeline of reader, function and writer; a task for each file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.data.corpus import SHARDS, Corpus
from bench.data.rows import clean, is_kept


def run(_: str, corpus: Corpus, out: Path, workers: int) -> None:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    pipeline = [
        JsonlReader(str(corpus.jsonl), compression=None, add_file_path=False),
        transform,
        JsonlWriter(str(out), "${rank}.jsonl", compression=None, adapter=as_row),
    ]
    logs = out.with_name("logs")
    LocalPipelineExecutor(pipeline, tasks=SHARDS, workers=workers, logging_dir=str(logs)).run()


def transform(documents: Iterator[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:  # noqa: ARG001
    """Given by position what the pipeline knows."""
    for document in documents:
        row = clean({"text": document.text})
        if is_kept(row):
            document.text, document.metadata["words"] = row["text"], row["words"]
            yield document


def as_row(_: Any, document: Any) -> dict[str, Any]:
    """The adapter that comes with the writer copies every document deeply; this one is faster."""
    return {"id": document.id, "text": document.text, **document.metadata}
