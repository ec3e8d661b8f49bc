"""What `result` raises for a job that was terminated."""

from __future__ import annotations

from concurrent.futures import CancelledError


def cancelled(job_id: str, how: str = "") -> CancelledError:
    """The error of a job that was terminated and has neither returned nor raised an error of its own."""
    return CancelledError(f"job {job_id} was terminated{how}")


def stopped_by(job_id: str, error: BaseException) -> BaseException:
    """What became of a terminated job that has raised `error`.

    What the job raises of its own accord is its error. An interruption, and what was raised because of one,
    is not for whoever asks for the result: a CancelledError stands for it, and has it as its cause.
    """
    told = cancelled(job_id)
    if not _comes_of_a_stop(error) or str(error).startswith(str(told)):
        return error
    told.__cause__ = error
    return told


def _comes_of_a_stop(error: BaseException | None) -> bool:
    seen = set[int]()  # chains may be rings
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt | CancelledError):
            return True
        seen.add(id(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False
