"""A cluster of two nodes, of which one is killed, and clients that come and go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

pytest.importorskip("ray", reason="the Ray backend is an extra")

from ray._private import ray_constants
from ray.cluster_utils import Cluster

from treadle.errors import ClusterError, WorkerLostError
from treadle.fray import ActorRequest, JobRequest, JobStatus, ResourceConfig
from treadle.fray.ray import RayClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
cloudpickle.register_pickle_by_value(sys.modules[__name__])

STORE = 100 << 20
LIMIT_S = 120.0

DRIVER = """
import sys, time
from pathlib import Path
from treadle.fray import JobRequest
from treadle.fray.ray import RayClient

def slow(folder):
    (folder / "begun").touch()
    while not (folder / "gate").exists():
        time.sleep(0.05)
    (folder / "effect").write_text("done")

folder = Path(sys.argv[2])
client = RayClient(sys.argv[1])
client.submit(JobRequest("slow", lambda: slow(folder), detached=True))
time.sleep(600)
"""


LEAVER = """
import ray
from treadle.errors import ClusterError
from treadle.fray import JobRequest
from treadle.fray.ray import RayClient

client = RayClient(max_workers=1, object_store_bytes=100 << 20)
assert client.submit(JobRequest("first", int)).result() == 0
pending = client.submit(JobRequest("slow", lambda: __import__("time").sleep(600)))
ray.shutdown()
for act in (pending.result, lambda: client.submit(JobRequest("late", int))):
    try:
        act()
    except ClusterError as error:
        print(error)
client.shutdown()
print("connected:", ray.is_initialized())
"""


def traced(folder: Path, number: int) -> int:
    with (folder / str(number)).open("a") as file:
        file.write("begun\n")
    time.sleep(2)
    return number


def traced_for_long(folder: Path) -> None:
    (folder / "begun").touch()
    time.sleep(600)


class Counter:
    def __init__(self) -> None:
        self.value = 0

    def add(self) -> tuple[int, str]:
        import ray

        self.value += 1
        return self.value, ray.get_runtime_context().get_node_id()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} has not come")
        time.sleep(0.02)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head node with one processor, on this machine only."""
    monkeypatch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    made: Any = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


def test_jobs_and_actors_survive_the_loss_of_a_node(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2, resources={"far": 1}, object_store_memory=STORE)
    with RayClient(cluster.address) as client:
        far = ResourceConfig(cpu=0, tags={"far": 1})
        doomed = client.submit(JobRequest("doomed", partial(traced, tmp_path, 99), resources=far))
        jobs = [client.submit(JobRequest("job", partial(traced, tmp_path, n), losses=3)) for n in range(6)]
        for number in (99, 0, 1, 2):
            wait_for(tmp_path / str(number))
        cluster.remove_node(node, allow_graceful=False)
        assert doomed.wait(LIMIT_S) is JobStatus.FAILED
        with pytest.raises(WorkerLostError, match="doomed"):
            doomed.result()
        assert [job.result(LIMIT_S) for job in jobs] == list(range(6))
        tries = [len((tmp_path / str(n)).read_text().splitlines()) for n in range(6)]
        assert sum(tries) in (7, 8), "the two on the lost node were made again, and no others"


def test_an_actor_is_made_anew_on_another_node(cluster: Any) -> None:
    node = cluster.add_node(num_cpus=1, resources={"far": 1}, object_store_memory=STORE)
    with RayClient(cluster.address) as client:
        wanted = ResourceConfig(cpu=0, tags={"far": 1})
        counter = client.create_actor(ActorRequest("counter", Counter, resources=wanted))
        first, there = counter.add()
        assert (first, counter.add()[0]) == (1, 2)
        cluster.add_node(num_cpus=1, resources={"far": 1}, object_store_memory=STORE)
        cluster.remove_node(node, allow_graceful=False)
        value, elsewhere = _after_loss(counter, there)
        assert value == 1, "what it had kept is gone"
        assert elsewhere != there
        assert counter.restarts == 1


def _after_loss(counter: Any, there: str) -> tuple[int, str]:
    """The process goes on for a moment without its node, and calls that come in between are lost too."""
    while True:
        try:
            value, where = counter.submit("add").result(LIMIT_S)
        except WorkerLostError:
            continue
        if where != there:
            return value, where


def test_a_detached_job_outlives_its_client(cluster: Any, tmp_path: Path) -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, cluster.address, str(tmp_path)])
    try:
        wait_for(tmp_path / "begun")
    finally:
        driver.kill()
        driver.wait()
    (tmp_path / "gate").touch()
    with RayClient(cluster.address) as client:
        wait_for(tmp_path / "effect")
        assert client.submit(JobRequest("next", os.getpid)).result(LIMIT_S) != os.getpid()


def test_who_leaves_ray_by_hand_is_told_so() -> None:
    """A call of Ray would start another cluster, with servers that others reach."""
    ran = subprocess.run(
        [sys.executable, "-c", LEAVER], capture_output=True, text=True, check=True, timeout=120
    )
    first, second, last = ran.stdout.splitlines()
    assert "slow#2: this process has left the Ray cluster" in first
    assert "'late': the cluster was lost: `ray.shutdown()` was called" in second
    assert (last, ran.stderr) == ("connected: False", "")


def test_a_cluster_that_is_lost_is_no_hang(cluster: Any, tmp_path: Path) -> None:
    """Ray waits for a minute, and ends the process then."""
    with RayClient(cluster.address) as client:
        job = client.submit(JobRequest("slow", partial(traced_for_long, tmp_path)))
        wait_for(tmp_path / "begun")
        cluster.head_node.kill_gcs_server()
        with pytest.raises(ClusterError, match=r"slow.*lost"):
            job.result(LIMIT_S)
        with pytest.raises(ClusterError, match=r"'late'.*lost"):
            client.submit(JobRequest("late", int))
