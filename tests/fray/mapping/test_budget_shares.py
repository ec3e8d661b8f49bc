"""One budget for all that is nested: never more bodies at once, and always an end."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.fray import Client, JobRequest
from treadle.fray.job_map import current_lane, job_map
from treadle.fray.mapping.shares import divide

MakeClient = Callable[..., Client]
pytestmark = pytest.mark.timeout(120)


def test_a_budget_is_divided_among_the_lanes() -> None:
    assert divide(4, None, None).nested is None
    assert (divide(4, 8, None).lanes, divide(4, 8, None).nested) == (4, 2)
    assert (divide(8, 3, None).lanes, divide(8, 3, None).nested) == (3, 1)
    assert (divide(8, 3, 2).lanes, divide(8, 3, 2).nested) == (2, 1)
    assert divide(4, None, 9).lanes == 9
    assert divide(4, 2, 9).lanes == 2


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_evaluate_inside_probe_inside_a_step(
    backend: str, client_of: MakeClient, workers: int, gauge_folder: Path, gauge: Any
) -> None:
    """Bodies that wait for a map do not count."""
    budget = 2
    inside = gauge(gauge_folder)

    def evaluate(name: str) -> int:
        with inside(f"evaluate-{name}"):
            time.sleep(0.002)
        return 1

    def probe(name: str) -> int:
        with inside(f"probe-{name}"):
            time.sleep(0.002)
        return sum(job_map(evaluate, [f"{name}-{each}" for each in range(3)]))

    def step(name: str) -> int:
        with inside(f"step-{name}"):
            time.sleep(0.002)
        return sum(job_map(probe, [f"{name}-{each}" for each in range(2)]))

    def run() -> int:
        return sum(job_map(step, ["a", "b"], budget=budget))

    client = client_of(backend, workers)
    assert client.submit(JobRequest("run", run)).result() == 12
    assert _peak(gauge_folder) <= min(budget, workers)


def test_lanes_above_the_share_are_cut(backend: str, client_of: MakeClient) -> None:
    def inner(_: int) -> int:
        time.sleep(0.002)
        return current_lane()

    def outer(_: int) -> set[int]:
        return set(job_map(inner, range(20), lanes=8))

    seen = set().union(*job_map(outer, range(2), client=client_of(backend, 4), budget=4, lanes=2))
    assert seen <= {0, 1}


def _peak(folder: Path) -> int:
    return max(int(each.name.split("=")[1]) for each in folder.glob("seen=*"))
