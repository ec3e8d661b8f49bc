"""A plug-in whose transform kills its process some times, at rows that hold a word."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from treadle.ext import Counters, ProcessResult, Transform, register_transform


@dataclass(frozen=True)
class Kill:
    """Every time leaves a file in the folder `marker`; after `times` of them the rows pass unchanged."""

    side_inputs: ClassVar[tuple[str, ...]] = ()

    word: str
    marker: str
    times: int = 1

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        return partial(_kill, self)


def _kill(options: Kill, rows: pa.RecordBatch) -> ProcessResult:
    if any(options.word in str(text) for text in rows["text"].to_pylist()):
        folder = Path(options.marker)
        before = len(list(folder.iterdir()))
        if before < options.times:
            (folder / str(before)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return ProcessResult({"rows": rows}, (), Counters(rows.num_rows, rows.num_rows))


register_transform("kill", Kill)
