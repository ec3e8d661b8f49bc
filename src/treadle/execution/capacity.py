"""What is known of the place where a run would run, without starting anything there."""

from __future__ import annotations

import os
from dataclasses import dataclass

from treadle.fray import Client, ResourceConfig, current_client, has_current_client
from treadle.fray.client import find_cluster
from treadle.fray.cluster import ClusterConfig
from treadle.fray.default import default_cluster
from treadle.fray.resources import machine_resources
from treadle.settings import find_settings


@dataclass(frozen=True, slots=True)
class Capacity:
    """So many `workers`, and so much in all; None is what shows only when the place is started."""

    workers: int | None = None
    total: ResourceConfig | None = None


def capacity(client: Client | None = None, cluster: str | None = None) -> Capacity:
    """That of the client, else of the cluster of that name, else of the place that a run would find itself.

    Raises:
        UnknownNameError: there is no such cluster; lists the known.
        ArgumentError: its settings are wrong.
    """
    if client is None and cluster is None and has_current_client():
        client = current_client()
    if client is not None:
        return Capacity(client.max_workers, client.resources())
    name = default_cluster() if cluster is None else cluster
    _, config = find_cluster(name, find_settings())
    if cluster is None and name == "local":  # threads of its own; the plan may well be for another machine
        return Capacity()
    return _told(config)


def _told(config: ClusterConfig) -> Capacity:
    there = machine_resources(cpu=config.cpu, memory=config.memory, gpu=config.gpu, tags=config.tags)
    if config.backend in ("threads", "processes"):
        return Capacity(config.max_workers or os.cpu_count() or 1, there)
    if config.backend == "ray" and config.address is None and config.says_what_it_has:
        return Capacity(config.max_workers or int(there.cpu) or 1, there)
    return Capacity(config.max_workers)
