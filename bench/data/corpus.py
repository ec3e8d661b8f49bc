"""The rows that all tools read: about 2.5 kB of English a document, the same on every machine.

The text is that of the package's corpus, cut into sentences and put together anew by a seeded draw, with what
real crawls have: runs of white space, typographic quotes, accents in two Unicode forms, short documents.
Eight shards of JSON lines, and the same rows in eight parquet files.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARDS = 8
KEYS = 170_000
SEED = 11
SOURCE = Path(__file__).parents[2] / "src/treadle/experiment/corpora/state_of_the_union.jsonl.gz"
CACHE = Path(os.environ.get("BENCH_DATA", Path(__file__).parents[2] / ".treadle" / "bench-data"))

_NOISE = (
    "",
    "",
    "",
    "  ",
    "\n\n",
    "\t",
    " \u201cAmen.\u201d ",
    " caf\u00e9 ",
    " cafe\u0301 ",
    " NAI\u0308VE ",
)


@dataclass(frozen=True)
class Corpus:
    """The two folders with the same rows; columns id, text, key, topic, size."""

    documents: int
    jsonl: Path
    parquet: Path


def corpus(documents: int, cache: Path = CACHE) -> Corpus:
    """The corpus of that many documents, written once into `cache`."""
    home = cache / f"{documents}-{SEED}"
    found = Corpus(documents, home / "jsonl", home / "parquet")
    if not home.exists():
        # In another process: the memory of this one would count as memory of the processes that it starts.
        words = [sys.executable, "-m", "bench.data.corpus", str(documents), str(home)]
        subprocess.run(words, cwd=Path(__file__).parents[2], check=True)
    return found


def main() -> None:
    documents, home = int(sys.argv[1]), Path(sys.argv[2])
    draft = home.with_name(f"{home.name}.draft-{os.getpid()}")
    (draft / "jsonl").mkdir(parents=True)
    (draft / "parquet").mkdir()
    for shard in range(SHARDS):
        _write(draft, shard, documents // SHARDS)
    shutil.rmtree(home, ignore_errors=True)
    draft.rename(home)


def _write(folder: Path, shard: int, documents: int) -> None:
    import orjson
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(_rows(shard, documents))
    with (folder / "jsonl" / f"part-{shard:02d}.jsonl").open("wb") as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)
    pq.write_table(
        pa.Table.from_pylist(rows), folder / "parquet" / f"part-{shard:02d}.parquet", compression="zstd"
    )


def _rows(shard: int, documents: int) -> Iterator[dict[str, Any]]:
    draw = random.Random(f"{SEED}-{shard}")
    sentences = _sentences()
    for at in range(documents):
        number = shard * documents + at
        yield {
            "id": f"doc-{number:08d}",
            "text": _text(draw, sentences),
            "key": f"key-{draw.randrange(KEYS):06d}",
            "topic": "general" if draw.random() < 0.6 else f"topic-{draw.randrange(200)}",
            "size": draw.randrange(1, 1000),
        }


def _text(draw: random.Random, sentences: list[str]) -> str:
    wanted = draw.lognormvariate(7.5, 0.8)
    at, length, parts = draw.randrange(len(sentences)), 0, []
    while length < wanted:
        part = sentences[at % len(sentences)] + draw.choice(_NOISE)
        parts.append(part)
        length += len(part)
        at += 1
    return " ".join(parts)


def _sentences() -> list[str]:
    import orjson

    with gzip.open(SOURCE) as lines:
        texts = [orjson.loads(line)["text"] for line in lines]
    return [f"{each.strip()}." for text in texts for each in text.split(". ") if each.strip()]


if __name__ == "__main__":
    main()
