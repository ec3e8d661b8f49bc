"""How long a unit waits to be started elsewhere when its worker is killed."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from bench.fray.side_by_side import Row
from bench.fray.work import die_once
from treadle.extras import check_extra
from treadle.fray.mapping.job_map import job_map

DEATHS, WORKERS = 20, 2
ABOUT = (
    "Milliseconds from the moment at which a unit kills its worker (SIGKILL) to its start on another one, "
    f"{DEATHS} times, one after the other, on {WORKERS} workers; by the wall clock, which both read."
)


def rows() -> Iterator[Row]:
    yield _row("processes", _process_client)
    check_extra("ray", "the row of Ray", "ray")
    yield _row("Ray", _ray_client)


def _row(where: str, make: Callable[[], Any]) -> Row:
    with make() as client, tempfile.TemporaryDirectory() as folder:
        units = [(folder, number) for number in range(DEATHS)]
        found = [each * 1e3 for each in job_map(die_once, units, client=client, lanes=1)]
    return {
        "": where,
        "median, ms": round(statistics.median(found)),
        "worst, ms": round(max(found)),
        "deaths": len(found),
    }


def _process_client() -> Any:
    from treadle.fray.processes import ProcessClient

    return ProcessClient(WORKERS)


def _ray_client() -> Any:
    from treadle.fray.ray import RayClient

    return RayClient(max_workers=WORKERS)
