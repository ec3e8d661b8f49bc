"""The errors that tell how a worker was lost."""

from __future__ import annotations

from typing import Any

from treadle.errors import ClusterError, WorkerLostError
from treadle.fray.processes.process_job import ProcessJob
from treadle.fray.processes.service import Lost
from treadle.fray.processes.worker_process import WorkerProcess
from treadle.kernel import add_note

_LAST_LINES = 20


def loss_error(job: ProcessJob[Any], worker: WorkerProcess, lost: Lost, how: str, advice: str) -> Exception:
    """The error of a job whose worker was lost; `how` is in the words of `WorkerProcess.end`."""
    if not lost.exited:
        how = "closed its connection to this process, and was killed"
    error = _unstarted(job, worker, how) if lost.unstarted else _lost(job, worker, how, advice)
    last = "\n".join(job.logs(_LAST_LINES))
    add_note(error, f"the last lines of its output:\n{last}" if last else "it had printed nothing")
    return error


def _lost(job: ProcessJob[Any], worker: WorkerProcess, how: str, advice: str) -> Exception:
    return WorkerLostError(
        f"job {job.job_id}: its worker (process {worker.pid}) {how} before the job had ended; "
        f"see what it printed last, and whether it took too much memory; {advice}"
    )


def _unstarted(job: ProcessJob[Any], worker: WorkerProcess, how: str) -> Exception:
    setting = worker.setting
    return ClusterError(
        f"job {job.job_id}: a worker (process {worker.pid}) could not be started: it {how}; "
        f"its folder was {setting.folder!r}, its environment {setting.environment}: see what it printed"
    )
