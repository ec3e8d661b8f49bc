"""Workers that die under their units."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.errors import PoisonedUnitError
from treadle.fray import Client
from treadle.fray.mapping.job_map import Tick, job_map

MakeClient = Callable[..., Client]
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("die", ["exit", "kill"])
@pytest.mark.parametrize("assign", ["pull", "static"])
def test_the_units_of_a_killed_worker_run_again(
    remote: str, client_of: MakeClient, tmp_path: Path, die: str, assign: Any
) -> None:
    killed = tmp_path / "killed"

    def body(number: int) -> int:
        if number == 17 and not killed.exists():
            killed.touch()
            os._exit(3) if die == "exit" else os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return number * 2

    ticks: list[Tick] = []
    results = job_map(body, range(40), client=client_of(remote, 2), on_tick=ticks.append, assign=assign)
    assert list(results) == [each * 2 for each in range(40)]
    assert ticks[-1].lost == 1


def test_a_unit_that_kills_its_workers_is_named_and_takes_nobody_with_it(
    remote: str, client_of: MakeClient, tmp_path: Path
) -> None:
    def body(number: int) -> int:
        if number == 21:
            (tmp_path / f"kill-{time.monotonic_ns()}").touch()
            print("the last words", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return number

    client = client_of(remote, 2)
    results: list[Any] = list(job_map(body, range(60), client=client, kills=2, return_exceptions=True))
    poisoned = results.pop(21)
    assert isinstance(poisoned, PoisonedUnitError)
    assert (poisoned.unit, poisoned.shown, poisoned.kills) == (21, "21", 2)
    assert remote == "ray" or "SIGKILL" in str(poisoned)
    assert any("the last words" in each for each in poisoned.__notes__)
    assert results == [each for each in range(60) if each != 21]
    assert len(list(tmp_path.iterdir())) <= 3  # twice alone, and once with others at the most


def test_a_poisoned_unit_raises_in_its_place(remote: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        if number == 5:
            os._exit(3)
        return number

    seen = []
    with pytest.raises(PoisonedUnitError, match=r"unit 5 \(the number 5\)"):
        numbers = job_map(
            body, range(1000), client=client_of(remote, 2), kills=1, label="the number {}".format
        )
        for result in numbers:
            seen.append(result)  # noqa: PERF402 - what came before the error is what is asked about
    assert seen == [0, 1, 2, 3, 4]
