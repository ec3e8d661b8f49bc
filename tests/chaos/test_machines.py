"""Runners on several machines share one object store, which fails; some of them are killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fsspec
import pytest

from tests.chaos import machine
from tests.chaos.proxy import Proxy, at_random
from treadle.artifacts import open_store
from treadle.artifacts.verify import verify

SEED = int(os.environ.get("TREADLE_TEST_SEED", "20261130"))


class Cluster:
    """The machines, each with a home and a place for temporary files of its own."""

    def __init__(self, folder: Path, store: str, seed: int, proxy: Proxy, size: int) -> None:
        print(f"TREADLE_TEST_SEED={seed}")
        self.folder, self.store, self.seed, self.proxy = folder, store, seed, proxy
        self.size = size
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.deaths = 0

    def start(self, name: str, slowness: float, lease_seconds: float) -> None:
        """Start a machine; each life of it is a machine of its own, for a dead one cannot be asked."""
        home = self.folder / name
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(home / "tmp")}
        environment = {
            **os.environ,
            **own,
            "TREADLE_TEST_SERVER": self.proxy.target,
            "TREADLE_LEASE_SECONDS": str(lease_seconds),
        }
        life = f"{name}-{self.deaths}"
        command = [sys.executable, machine.__file__, self.store, self.seed, self.size, life, slowness]
        self.running[name] = subprocess.Popen([str(each) for each in command], env=environment)

    def kill(self, name: str) -> None:
        """As when the power goes."""
        process = self.running[name]
        process.kill()
        self.deaths += process.wait() != 0

    def wait(self) -> list[int]:
        """How they ended."""
        return [each.wait(150) for each in self.running.values()]

    def ran(self) -> Counter[str]:
        """How often the function of each step came to its end."""
        fs = fsspec.filesystem("s3", endpoint_url=self.proxy.target, use_listings_cache=False)
        return Counter(path.rpartition("/")[2][:3] for path in fs.find(f"{self.store}-ran"))

    def told(self) -> str:
        """What happened, in figures."""
        again = sum(self.ran().values()) - self.size
        faults = sum(not each.end.isdigit() for each in self.proxy.seen)
        return (
            f"{self.size} steps, each committed once; {len(self.proxy.seen)} requests, {faults} faults, "
            f"{self.deaths} deaths, {again} functions called again"
        )

    def check(self) -> None:
        """Every place has one build, whole, with what it must hold; no lease is left of the living."""
        store = open_store(self.store)
        for each in machine.steps(self.store, self.seed, self.size):
            (record,) = store.records(store.place(each.output_path))
            assert record.number == 1
            folder = store.folder(each.output_path, record.head)
            with fsspec.open(f"{folder}/out.txt") as file:
                assert file.read().decode() == machine.text(each.name)
        done = Counter(each.name for each in store.ledger.attempts() if each.outcome == "done")
        assert set(done.values()) == {1}, "each step was committed once"
        assert len(done) == self.size
        assert list(verify(store)) == []


@contextmanager
def cluster(folder: Path, store: str, seed: int, proxy: Proxy, size: int = 40) -> Iterator[Cluster]:
    made = Cluster(folder, store, seed, proxy, size)
    try:
        yield made
    finally:
        for process in made.running.values():
            process.kill()
            process.wait()


def test_two_machines_race_and_agree(tmp_path: Path, bucket: str, proxy: Proxy) -> None:
    """While the store answers one request in fifty with an error, or not at all."""
    proxy.choose = at_random(random.Random(SEED), 0.02)
    with cluster(tmp_path, bucket, SEED, proxy, size=10) as machines:
        for name in ("one", "two"):
            machines.start(name, slowness=0.0, lease_seconds=30)
        assert machines.wait() == [0, 0]
        proxy.well()
        machines.check()
        print(machines.told())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_store_that_drops_for_ten_seconds_costs_nothing_but_time(
    tmp_path: Path, bucket: str, proxy: Proxy
) -> None:
    with cluster(tmp_path, bucket, SEED, proxy) as machines:
        for name in ("one", "two"):
            machines.start(name, slowness=0.5, lease_seconds=6)
        wait_for_requests(proxy, 300)
        before = len(proxy.seen)
        proxy.cut_for(10).join()
        assert machines.wait() == [0, 0]
        machines.check()
        print(f"cut for 10 s at request {before}: {machines.told()}")
        assert sum(machines.ran().values()) == machines.size, "nothing was done twice"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("nth", range(3))
def test_machines_that_die_on_a_store_that_fails(tmp_path: Path, bucket: str, proxy: Proxy, nth: int) -> None:
    chance = random.Random(SEED + nth)
    proxy.choose = at_random(random.Random(SEED + nth), 0.03)
    names = ("one", "two", "three")
    with cluster(tmp_path, bucket, SEED + nth, proxy) as machines:
        for name in names:
            machines.start(name, slowness=0.5, lease_seconds=3)
        for _ in range(6):
            wait_for_requests(proxy, chance.randrange(20, 200))
            if chance.random() < 0.5:
                proxy.cut_for(chance.uniform(0.1, 3)).join()
            else:
                name = chance.choice(names)
                machines.kill(name)
                machines.start(name, slowness=0.5, lease_seconds=3)
        assert machines.wait() == [0, 0, 0]
        proxy.well()
        machines.check()
        print(machines.told())


def wait_for_requests(proxy: Proxy, count: int) -> None:
    """Until so many more have come; less when they end before."""
    arrived = threading.Event()
    last, choose = len(proxy.seen) + count, proxy.choose

    def counted(seen):  # type: ignore[no-untyped-def]
        if seen.number >= last:
            arrived.set()
        return choose(seen)

    proxy.choose = counted
    arrived.wait(20)
    proxy.choose = choose
