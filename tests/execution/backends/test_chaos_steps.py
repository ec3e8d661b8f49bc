"""Workers and drivers that are killed at any moment: every step is done, once, and nothing begun is lost."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.execution.backends import driver
from tests.execution.backends.test_driver_ends import Project, are_gone, until
from treadle import run
from treadle.artifacts import open_store
from treadle.fray.processes import ProcessClient
from treadle.storage.ledger.process import is_gone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STEPS, KILLS, DRIVERS = 60, 25, 8


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path, STEPS)
    yield made
    for each in made.started:
        if each.poll() is None:
            each.kill()
        each.communicate()


def check_whole(project: Project) -> Counter[str]:
    """All steps are done, none was committed twice; how many attempts ended how."""
    store = open_store(str(project.store))
    places = [each.place for each in store.ledger.places()]
    assert len(places) == STEPS
    assert [len(store.records(place)) for place in places] == [1] * STEPS
    assert project.owners() == 0
    assert not list(project.store.glob(".treadle/work/*"))
    outcomes: Counter[str] = Counter(note.outcome for note in store.ledger.attempts())
    assert outcomes["done"] == STEPS
    return outcomes


class Killer(threading.Thread):
    """Kills workers that are at work for this store, chosen at random, `most` in all."""

    def __init__(self, chance: random.Random, store: Path, most: int) -> None:
        super().__init__(daemon=True)
        self.chance, self.store, self.most = chance, store, most
        self.killed = 0
        self.over = threading.Event()

    def run(self) -> None:
        while self.killed < self.most and not self.over.wait(self.chance.random() * 0.1):
            owners = dict(open_store(str(self.store)).ledger.leases()).values()
            if pids := sorted(owner.pid for owner in owners if not is_gone(owner)):
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(pids), signal.SIGKILL)
                    self.killed += 1


@pytest.mark.parametrize("seed", random.sample(range(10**6), 3))
def test_workers_are_killed_at_random(project: Project, seed: int) -> None:
    print("seed", seed)
    killer = Killer(random.Random(seed), project.store, KILLS)
    handles = driver.build(str(project.folder))
    began = time.monotonic()
    with ProcessClient(4) as client:
        killer.start()
        results = run(*handles, prefix=project.store, fray_client=client, max_concurrent=4)
        killer.over.set()
        killer.join()
    assert f"sum {sum(results[each.id] for each in handles)}" == project.expected()
    outcomes, begun = check_whole(project), project.begun()
    print(
        f"{killer.killed} kills; attempts {dict(outcomes)}; bodies begun {sum(begun.values())}, "
        f"the most of one {max(begun.values())}; {time.monotonic() - began:.1f} s"
    )
    assert killer.killed
    assert outcomes["lost"] <= killer.killed
    assert STEPS <= sum(begun.values()) <= STEPS + killer.killed


def await_begun(project: Project, process: subprocess.Popen[str], count: int) -> None:
    late = time.monotonic() + 60
    while sum(project.begun().values()) < count and process.poll() is None:
        assert time.monotonic() < late
        time.sleep(0.005)


@pytest.mark.parametrize("seed", random.sample(range(10**6), 3))
def test_drivers_are_killed_at_random(project: Project, seed: int) -> None:
    begun = kill_drivers(project, seed, DRIVERS, "processes")
    assert set(begun.values()) == {1}, "the workers survived, so nothing was done twice"
    until(lambda: are_gone(project.pids()), "no process is left")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a Ray cluster that listens on this machine only, and outlives its drivers."""
    pytest.importorskip("ray")
    for name, value in LOOPBACK.items():
        monkeypatch.setenv(name, value)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    folder = tempfile.mkdtemp(prefix="tr")  # Ray wants a short path
    ray = Path(sys.executable).with_name("ray")
    place = [f"--port={address.rpartition(':')[2]}", f"--temp-dir={folder}"]
    options = ["--node-ip-address=127.0.0.1", "--num-cpus=4", "--include-dashboard=false", "--block"]
    with (tmp_path / "ray.log").open("w") as log:
        process = subprocess.Popen(
            [
                ray,
                "start",
                "--head",
                *place,
                *options,
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until(lambda: "will now block" in (tmp_path / "ray.log").read_text(), "the cluster is there", 120)
    yield address
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


LOOPBACK = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def test_drivers_of_a_ray_cluster_are_killed_at_random(project: Project, cluster: str) -> None:
    begun = kill_drivers(project, random.randrange(10**6), 3, "ray", cluster)
    assert set(begun.values()) == {1}, "the workers survived, so nothing was done twice"


def kill_drivers(project: Project, seed: int, kills: int, backend: str, *options: str) -> dict[str, int]:
    """Kill so many drivers, and let one come to the end; how often each body has begun."""
    print("seed", seed)
    chance = random.Random(seed)
    done: list[int] = []
    for _ in range(kills):
        process = project.start(backend, *options)
        more = sum(project.begun().values()) + chance.randrange(12)
        await_begun(project, process, more)
        time.sleep(chance.random() * 0.1)
        process.kill()
        process.communicate()
        done.append(project.done() if project.store.exists() else 0)
    out, err = project.start(backend, *options).communicate(timeout=120)
    assert project.expected() in out, err
    outcomes, begun = check_whole(project), project.begun()
    print(f"done at each kill: {done}; attempts {dict(outcomes)}; begun {Counter(begun.values())}")
    return begun
