"""The loop that one writes without a tool; nothing is checked, nothing is kept but the rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import orjson

from bench.data.corpus import Corpus
from bench.data.rows import clean, is_kept


def run(_: str, corpus: Corpus, out: Path, loops: int = 1) -> None:
    out.mkdir()
    files = sorted(corpus.jsonl.glob("*.jsonl"))
    others = [_fork(files[at::loops], out) for at in range(1, loops)]
    _loop(files[::loops], out)
    for each in others:
        if os.waitpid(each, 0)[1]:
            raise SystemExit("one of the loops failed")


def _fork(files: Sequence[Path], out: Path) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        _loop(files, out)
        code = 0
    finally:
        os._exit(code)


def _loop(files: Sequence[Path], out: Path) -> None:
    for file in files:
        with file.open("rb") as lines, (out / file.name).open("wb") as written:
            for line in lines:
                row = clean(orjson.loads(line))
                if is_kept(row):
                    written.write(orjson.dumps(row) + b"\n")
