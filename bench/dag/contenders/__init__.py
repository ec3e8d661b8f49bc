"""All contenders, in the order of the tables."""

from bench.dag.contender import Contender
from bench.dag.contenders import (
    dagster_job,
    dask_threads,
    doit_tasks,
    floor,
    flytekit_tasks,
    hamilton_driver,
    joblib_memory,
    kedro_pipeline,
    luigi_tasks,
    ours,
    prefect_flow,
    ray_tasks,
    redun_tasks,
)

CONTENDERS: tuple[Contender, ...] = (
    floor.BARE,
    floor.KEPT,
    ours.KEPT,
    ours.SINKS,
    ours.MEMORY,
    hamilton_driver.THREADED,
    doit_tasks.CONTENDER,
    joblib_memory.CONTENDER,
    dask_threads.CONTENDER,
    ray_tasks.CONTENDER,
    hamilton_driver.CACHED,
    kedro_pipeline.CONTENDER,
    flytekit_tasks.CONTENDER,
    prefect_flow.CONTENDER,
    luigi_tasks.CONTENDER,
    dagster_job.CONTENDER,
    redun_tasks.CONTENDER,
)
BY_NAME = {each.name: each for each in CONTENDERS}

__all__ = ["BY_NAME", "CONTENDERS"]
