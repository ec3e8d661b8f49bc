"""A million independent steps from a generator: the memory must not grow with their number."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bench.dag.contenders import ours
from bench.dag.measures.measure import Measure, Row, present_mb

SAMPLES = 10


def rows(folder: Path, full: bool) -> Iterator[Row]:
    """A sample at each tenth of the way, taken where the generator is asked for the next step."""
    steps = 1_000_000 if full else 100_000
    samples: SimpleQueue[Row | None] = SimpleQueue()
    failed: list[BaseException] = []

    def body() -> None:
        try:
            ours.run_specs(_sampled(steps, folder / "store", samples))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that reads
            failed.append(error)
        samples.put(None)

    began = time.perf_counter()
    Thread(target=body, daemon=True).start()
    while (row := samples.get()) is not None:
        yield row
    if failed:
        raise failed[0]
    yield _sample(f"{steps:,}, all ended", time.perf_counter() - began)


def _sampled(steps: int, store: Path, samples: SimpleQueue[Row | None]) -> Iterator[Any]:
    began = time.perf_counter()
    for at in range(steps):
        if at % (steps // SAMPLES) == 0:
            samples.put(_sample(f"{at:,}", time.perf_counter() - began))
        yield ours.spec(at, store)


def _sample(steps: str, seconds: float) -> Row:
    return {"steps drawn from the generator": steps, "s": round(seconds, 1), "MB": round(present_mb())}


MEASURE = Measure(
    "generator",
    "`StepRunner.run(generator)`, independent steps, kept on the disk; the memory that the process holds.",
    rows,
    90,
)
