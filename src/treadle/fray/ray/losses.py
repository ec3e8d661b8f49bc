"""Ray's errors in the words of treadle: a lost worker is told apart from a cluster that cannot do it."""

from __future__ import annotations

from collections.abc import Sequence

from ray import exceptions as ray_errors

from treadle.errors import ClusterError, TreadleError, WorkerLostError
from treadle.fray.ray.ticket import Start
from treadle.kernel import add_note

_LOSSES: tuple[tuple[type[Exception], str], ...] = (
    (ray_errors.OutOfMemoryError, "Ray ended it, because the memory of its machine ran out"),
    (ray_errors.NodeDiedError, "its machine is gone"),
    (ray_errors.OwnerDiedError, "the worker that had submitted the job is gone, and Ray ends its jobs then"),
    (ray_errors.ObjectLostError, "what it returned was lost with the machine that held it"),
    (ray_errors.WorkerCrashedError, "the process ended in the middle of the job: killed, or crashed"),
    (ray_errors.RayActorError, "the process of the actor ended: killed, or crashed"),
    (ray_errors.LocalRayletDiedError, "Ray's own process on its machine is gone"),
)


def is_loss(error: BaseException) -> bool:
    """Whether the worker was lost, which is no fault of the function."""
    return isinstance(error, tuple(kind for kind, _ in _LOSSES))


def is_cancelled(error: BaseException) -> bool:
    """Whether Ray did not run the task, or interrupted it, since it was told to."""
    return (
        isinstance(error, (ray_errors.TaskCancelledError, ray_errors.RequestCancelledError))
        if hasattr(ray_errors, "RequestCancelledError")
        else isinstance(error, ray_errors.TaskCancelledError)
    )


def translated(what: str, error: BaseException) -> TreadleError:
    """The error for whoever asks for the result; for losses see `loss_error`."""
    told: TreadleError
    if isinstance(error, ray_errors.RuntimeEnvSetupError):
        told = ClusterError(f"{what}: Ray could not set up its environment: {_first_line(error)}")
    elif isinstance(error, (ray_errors.OutOfDiskError, ray_errors.ObjectStoreFullError)):
        told = ClusterError(
            f"{what}: the objects of the cluster found no place: {_first_line(error)}; let jobs return paths "
            "instead of data, or give the cluster a larger object store or a `spill_dir` with more room"
        )
    else:
        told = ClusterError(
            f"{what}: Ray could not run it: {_reason(error)}; "
            "see that all machines have the same versions of Python, Ray and treadle"
        )
    told.__cause__ = error
    return told


def loss_error(
    job_id: str, error: BaseException, start: Start | None, tail: Sequence[str], advice: str
) -> WorkerLostError:
    """The error of a job whose worker was lost; `tail` are the last lines of its log."""
    how = next(words for kind, words in _LOSSES if isinstance(error, kind))
    where = f" (process {start.pid} on node {start.node_id[:12]})" if start else ""
    told = WorkerLostError(f"job {job_id}: its worker was lost{where}: {how}; see its log, {advice}")
    if tail:
        add_note(told, "the last lines of its log:\n" + "\n".join(tail))
    told.__cause__ = error
    return told


def _reason(error: BaseException) -> str:
    if isinstance(error, ray_errors.RayTaskError):  # its own text is a traceback
        error = error.cause
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
