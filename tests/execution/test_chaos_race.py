"""Several processes on one store, some of which are killed: each step is built once, and all ends well."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.execution import racer
from treadle.artifacts import open_store

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("TREADLE_TEST_SEED", "20261129"))


class Race:
    """Processes that run one random graph."""

    def __init__(self, folder: Path, seed: int) -> None:
        print(f"TREADLE_TEST_SEED={seed}")
        self.store, self.seed = str(folder / "store"), seed
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, slowness: float = 1, lease_seconds: float = 30) -> None:
        command = [sys.executable, racer.__file__, self.store, str(self.seed), str(slowness)]
        environment = {**os.environ, "TREADLE_LEASE_SECONDS": str(lease_seconds)}
        self.processes.append(subprocess.Popen(command, env=environment))

    def ran(self) -> Counter[str]:
        witness = Path(f"{self.store}.ran")
        return Counter(witness.read_text().split()) if witness.exists() else Counter()

    def builds(self) -> dict[str, list[int]]:
        store = open_store(self.store)
        found = {
            each.name: [record.number for record in store.records(store.place(each.output_path))]
            for each in racer.steps(self.store, self.seed)
        }
        store.ledger.close()
        return found


@contextmanager
def race(folder: Path, seed: int) -> Iterator[Race]:
    made = Race(folder, seed)
    try:
        yield made
    finally:
        for process in made.processes:
            process.kill()
            process.wait()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("runners", [2, 4])
@pytest.mark.parametrize("nth", range(3))
def test_processes_on_one_store_run_each_step_once(tmp_path: Path, runners: int, nth: int) -> None:
    """Half-written files of another process must never be read, nor its work be done again."""
    with race(tmp_path, SEED + nth) as running:
        for _ in range(runners):
            running.start()
        assert [process.wait(100) for process in running.processes] == [0] * runners
        builds = running.builds()
        assert running.ran() == dict.fromkeys(builds, 1)
        assert set(map(tuple, builds.values())) == {(1,)}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("nth", range(3))
def test_whoever_is_killed_is_replaced_and_nothing_is_built_twice(tmp_path: Path, nth: int) -> None:
    chance = random.Random(SEED + nth)
    with race(tmp_path, SEED + nth) as running:
        for _ in range(3):
            running.start()
        for _ in range(12):  # at any moment: of the start, of a body, of a commit
            time.sleep(chance.uniform(0.02, 0.4))
            process = chance.choice(running.processes)
            process.kill()
            if process.wait(60) != 0:
                running.processes.remove(process)
                running.start()
        assert {process.wait(100) for process in running.processes} == {0}
        builds = running.builds()
        assert set(running.ran()) == set(builds)
        assert set(map(tuple, builds.values())) == {(1,)}, "what was committed is served"
        assert not list(Path(running.store).glob("*/.*"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("nth", range(3))
def test_whoever_is_paused_loses_its_steps_and_overwrites_nothing(tmp_path: Path, nth: int) -> None:
    """Clocks and pauses must not matter: a build of one number is committed once, whoever comes late."""
    chance = random.Random(SEED + nth)
    with race(tmp_path, SEED + nth) as running:
        for _ in range(3):
            running.start(slowness=10, lease_seconds=0.3)
        for _ in range(4):
            time.sleep(chance.uniform(0.1, 0.5))
            process = chance.choice(running.processes)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.9)  # longer than the lease
            process.send_signal(signal.SIGCONT)
        assert [process.wait(100) for process in running.processes] == [0, 0, 0]
        builds = running.builds()
        assert set(running.ran()) == set(builds)
        assert set(map(tuple, builds.values())) == {(1,)}
        assert not list(Path(running.store).glob("*/.*"))
