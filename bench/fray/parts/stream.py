"""The memory of the driver while units and results stream through it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from bench.dag.measures.measure import peak_mb
from bench.fray.side_by_side import Row
from bench.fray.work import hundred_bytes
from treadle.fray.mapping.job_map import job_map

WORKERS = 2
ABOUT = (
    "Peak memory of the driver, MB, each in a process of its own: units from a generator, results of 100 "
    f"bytes that are dropped as they come, {WORKERS} worker processes."
)


def rows() -> Iterator[Row]:
    for count in (10_000, 100_000, 1_000_000):
        words = [sys.executable, "-m", "bench.fray.parts.stream", str(count)]
        ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        yield {"units": count, "peak, MB": float(ran.stdout)}


def main() -> None:
    from treadle.fray.processes import ProcessClient

    with ProcessClient(WORKERS) as client:
        for _ in job_map(hundred_bytes, iter(range(int(sys.argv[1]))), client=client):
            pass
    print(round(peak_mb(), 1))


if __name__ == "__main__":
    main()
