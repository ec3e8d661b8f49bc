"""One budget for all that is nested: never more bodies at once, and always an end."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.fray import Client, JobRequest
from treadle.fray.mapping.job_map import current_lane, job_map
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
    for budget in range(1, 20):
        for lanes in range(1, 20):
            share = divide(8, budget, lanes)
            assert share.nested is not None
            assert share.nested >= 1
            assert share.lanes * share.nested <= budget


@pytest.mark.parametrize(
    ("workers", "budget", "lanes"),
    [(1, 2, None), (2, 2, None), (4, 2, None), (3, 1, None), (4, 3, None), (2, 4, None), (6, 4, 2)],
)
def test_evaluate_inside_probe_inside_a_step(
    backend: str,
    client_of: MakeClient,
    workers: int,
    budget: int,
    lanes: int | None,
    gauge_folder: Path,
    gauge: Any,
) -> None:
    """Never more bodies at once than the budget, whatever is nested, and always an end: also with one worker.

    Bodies that wait for a map do not count. A client that joins a Ray cluster holds its own jobs back; those
    that jobs submit are limited by the cluster, and by the budget.
    """
    inside = gauge(gauge_folder)

    def evaluate(name: str) -> int:
        with inside(f"evaluate-{name}"):
            time.sleep(0.002)
        return 1

    def probe(name: str) -> int:
        with inside(f"probe-{name}"):
            time.sleep(0.002)
        return sum(job_map(evaluate, [f"{name}-{each}" for each in range(4)], lanes=lanes))

    def step(name: str) -> int:
        with inside(f"step-{name}"):
            time.sleep(0.002)
        return sum(job_map(probe, [f"{name}-{each}" for each in range(3)], lanes=lanes))

    def run() -> int:
        return sum(job_map(step, ["a", "b", "c"], budget=budget, lanes=lanes))

    client = client_of(backend, workers)
    assert client.submit(JobRequest("run", run)).result() == 36
    assert _peak(gauge_folder) <= (budget if backend == "ray" else min(budget, workers))
    assert not list(gauge_folder.glob("*.in"))


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
