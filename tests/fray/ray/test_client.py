"""What only Ray does: a cluster of its own, objects that spill, and connections that do not come about."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path

import cloudpickle
import psutil
import pytest
import ray

from treadle.errors import ArgumentError, ClusterError
from treadle.fray import (
    EnvironmentConfig,
    JobHandle,
    JobRequest,
    JobStatus,
    ResourceConfig,
    current_client,
    wait_all,
)
from treadle.fray.ray import RayClient
from treadle.fray.ray.probe import check_address, check_answers
from treadle.fray.running_job import parked

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def where_modules_are() -> list[str]:
    return sys.path


def below(depth: int) -> int:
    """Waits where Ray does not see it, so that it cannot lend the processor by itself."""
    if not depth:
        return 1
    jobs = [current_client().submit(JobRequest("below", partial(below, depth - 1))) for _ in "ab"]
    for job in jobs:
        job.add_done_callback(lambda _: None)
    with parked():
        for job in jobs:
            job.await_end(60)  # type: ignore[attr-defined]
    return sum(job.result() for job in jobs)


def rest(begun: Path) -> None:
    begun.touch()
    time.sleep(600)


def detached_below(depth: int) -> int:
    if not depth:
        return 0
    fn = partial(detached_below, depth - 1)
    job = current_client().submit(JobRequest("below", fn, detached=True))
    wait_all([job])
    return 1 + job.result()


def test_the_cluster_can_be_reached_from_this_machine_only(client: RayClient) -> None:
    """Whoever reaches a port of Ray can run code."""
    client.submit(JobRequest("warm", int)).result(60)
    listening = set()
    for process in psutil.Process().children(recursive=True):
        try:
            connections = process.net_connections("inet")
        except psutil.NoSuchProcess:
            continue
        listening |= {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert listening


def test_nothing_of_the_start_is_left_in_this_process(client: RayClient) -> None:
    assert "RAY_AUTH_TOKEN" not in os.environ
    assert "RAY_USAGE_STATS_ENABLED" not in os.environ
    assert signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, signal.default_int_handler)


def test_results_beyond_the_object_store_are_spilled(client: RayClient) -> None:
    jobs = [client.submit(JobRequest("large", partial(bytes, 20 << 20))) for _ in range(8)]
    assert [len(job.result(60)) for job in jobs] == [20 << 20] * 8


def test_workers_find_the_modules_of_the_client(client: RayClient) -> None:
    there = client.submit(JobRequest("path", where_modules_are)).result(60)
    assert {each for each in sys.path if each} <= set(there)


def test_jobs_that_wait_unseen_by_ray_make_room_too(client: RayClient) -> None:
    assert client.submit(JobRequest("root", partial(below, 3))).result(60) == 8


def test_detached_jobs_of_jobs_make_room_too(client: RayClient) -> None:
    assert client.submit(JobRequest("root", partial(detached_below, 4))).result(60) == 4


def test_a_client_prints_to_the_end_what_jobs_printed_that_nobody_waited_for(
    client: RayClient, capfd: pytest.CaptureFixture[str]
) -> None:
    with RayClient() as other:
        for n in range(5):
            other.submit(JobRequest("talk", partial(print, f"word {n}")))
    assert sorted(capfd.readouterr().out.splitlines()) == [f"word {n}" for n in range(5)]


def test_clients_share_the_connection_of_the_process(client: RayClient) -> None:
    with RayClient() as other:
        assert other.submit(JobRequest("one", partial(int, "1"))).result(60) == 1
    assert ray.is_initialized()
    assert client.submit(JobRequest("two", partial(int, "2"))).result(60) == 2


def test_a_second_cluster_is_refused_while_one_is_connected(client: RayClient) -> None:
    with pytest.raises(ArgumentError, match=r"connected to the Ray cluster .* already.*10\.0\.0\.1"):
        RayClient("10.0.0.1:6379")


def test_an_unknown_folder_is_refused_at_once(client: RayClient, tmp_path: Path) -> None:
    nowhere = EnvironmentConfig(working_dir=str(tmp_path / "nowhere"))
    with pytest.raises(ArgumentError, match=r"'ask'.*working_dir.*nowhere"):
        client.submit(JobRequest("ask", int, environment=nowhere))


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "10.0.0.1", "host:port"])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ArgumentError, match="HOST:PORT"):
        check_address(address)


def test_a_cluster_that_is_not_there_is_named_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # bound, and not listened at
        with pytest.raises(ClusterError, match=rf"{address}.*ray status"):
            check_answers(address, 5)


def test_something_else_that_listens_is_no_cluster() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ClusterError, match=rf"{address}"):
            check_answers(address, 3)


def test_tags_and_processors_of_the_cluster_are_told(client: RayClient) -> None:
    assert client.resources().cpu == 2
    assert client.max_workers == 2
    with pytest.raises(ArgumentError, match="licence"):
        client.submit(JobRequest("huge", int, resources=ResourceConfig(tags={"licence": 1})))


def test_ctrl_c_in_the_block_of_a_client_ends_its_jobs(client: RayClient, tmp_path: Path) -> None:
    jobs: list[JobHandle[None]] = []
    with pytest.raises(KeyboardInterrupt), RayClient(grace=0.1) as other:
        jobs.extend(other.submit(JobRequest("sleep", partial(rest, tmp_path / str(n)))) for n in range(3))
        while not list(tmp_path.iterdir()):
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert {job.status() for job in jobs} == {JobStatus.STOPPED}


def test_ending_many_jobs_that_wait_takes_no_time_for_each(client: RayClient, tmp_path: Path) -> None:
    first = [client.submit(JobRequest("first", partial(rest, tmp_path / str(n)))) for n in range(2)]
    others = [client.submit(JobRequest("other", int)) for _ in range(500)]
    for job in (*others, *first):
        job.terminate()
    assert set(wait_all(others, 60)) == {JobStatus.STOPPED}
    wait_all(first, 60)
