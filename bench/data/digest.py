"""What a tool wrote, so that tools can be compared: how many rows, and a sum over them in any order."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.places import ROOT


class Digest(NamedTuple):
    """The same for the same rows, whatever their order, their files and the order of their columns."""

    rows: int
    total: int


def digest(out: Path) -> Digest:
    """Of all jsonl and parquet files in the folder.

    In another process: the memory of this one would count as memory of the processes that it starts next.
    """
    words = [sys.executable, "-m", "bench.data.digest", out]
    told = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Digest(*map(int, told.stdout.split()))


def main() -> None:
    import orjson

    rows = total = 0
    for row in _rows(Path(sys.argv[1])):
        written = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
        total += int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "big")
        rows += 1
    print(rows, total % 2**64)


def _rows(out: Path) -> Iterator[Mapping[str, Any]]:
    import orjson
    import pyarrow.parquet as pq

    for file in sorted(each for each in out.rglob("*") if each.is_file()):
        if file.suffix in (".jsonl", ".json") and not file.name.startswith("_"):
            with file.open("rb") as lines:
                yield from map(orjson.loads, lines)
        elif file.suffix == ".parquet":
            for batch in pq.ParquetFile(file).iter_batches(4096):
                yield from batch.to_pylist()


if __name__ == "__main__":
    main()
