"""An attempt in another process: what is sent there, and what comes back.

1. `pack`: the task as bytes, with what only the process that planned can know
2. `attempt_elsewhere`: in the worker, the task is carried out; its outcome in a form that can be sent
3. `received`: the outcome, in the process that planned
"""

from __future__ import annotations

import pickle
from datetime import datetime
from typing import NamedTuple, TypeAlias

from treadle.artifacts import open_store
from treadle.artifacts.code_hash import code_file, comparable, loaded_hash
from treadle.artifacts.provenance import capture as provenance
from treadle.artifacts.script import script_here, work_for
from treadle.errors import NotSendableError, StepError
from treadle.execution.retry import NEVER
from treadle.execution.running.capture import capture
from treadle.execution.running.execute import attempt
from treadle.execution.running.sent_step import sent_with
from treadle.execution.running.task import Broken, Served, Task, Tried
from treadle.execution.running.telling import code_of
from treadle.execution.step_spec import StepSpec
from treadle.fray.pickling import pickled
from treadle.fray.sent_error import SentError, receive_error, send_error
from treadle.kernel import Failed, add_note
from treadle.storage.ledger import Held


class SentBroken(NamedTuple):
    """See `Broken`."""

    error: SentError
    started: datetime | None
    seconds: float
    is_retried: bool
    cancelled: bool = False


SentTried: TypeAlias = Served | SentBroken | Held
"""See `Tried`."""


def pack(task: Task) -> bytes:
    """The task, without the graph above its step.

    Raises:
        NotSendableError: the step has what cannot be pickled; names both.
    """
    full = task._replace(code=code_of(task.step), origin=provenance(task.run))
    try:
        return sent_with(task.step, (script_here(), tuple(full), _loaded(task.step)))
    except Exception as error:
        raise not_sendable(task.step, error) from error


def not_sendable(step: StepSpec, error: Exception) -> NotSendableError:
    """The error of a step that could not be pickled because of `error`, with the way to what is at fault."""
    what = f"step {step.id}"
    try:
        pickled(step.fn, what)
    except NotSendableError as named:
        return named
    return NotSendableError(what, "", f"{type(error).__name__}: {error}")


def attempt_elsewhere(step_id: str, packed: bytes) -> SentTried:
    """Carry a packed task out, in the process that it was sent to."""
    try:
        script, parts, loaded = pickle.loads(packed)  # noqa: S301 - from the run that this process works for
        work_for(script)
        task = Task(*parts)
        _check_code(task, loaded)
        _refresh(task.step)
    except SyntaxError as error:
        return _never_begun(_unreadable(step_id, error))
    except Exception as error:  # noqa: BLE001 - the outcome, raised at the end of the run
        add_note(error, f"while step {step_id} was read by the process that was to run it")
        return _never_begun(error)
    with capture():
        tried = attempt(task)
    open_store(str(task.step.output_path_prefix)).workplace.tidy()  # a worker may be gone any moment
    if not isinstance(tried, Broken):
        return tried
    raised = tried.outcome.error
    is_retried = isinstance(raised, (task.step.retry or NEVER).on)
    return SentBroken(send_error(raised), tried.started, tried.seconds, is_retried, tried.cancelled)


def received(tried: Tried | SentTried) -> Tried:
    """What came of an attempt, wherever it was made."""
    if not isinstance(tried, SentBroken):
        return tried
    return Broken(
        Failed(receive_error(tried.error)),
        tried.started,
        tried.seconds,
        tried.is_retried,
        cancelled=tried.cancelled,
    )


def _loaded(step: StepSpec) -> str:
    return loaded_hash(step.fn) if step.fn else ""


def _check_code(task: Task, loaded: str) -> None:
    """See that the function here is the one of who planned, whose bytecode is `loaded`.

    A process that began later has imported what the file said by then. Either of two hashes will do: the file
    may have been edited since this process imported it, and an import hook may give each process its own
    bytecode.

    Raises:
        StepError: it is another one, and its result would pass for that of the former.
    """
    step = task.step
    if step.fn is None or not task.code or _loaded(step) == loaded:
        return
    present = code_of(step)
    if comparable(present, task.code) and present != task.code:
        raise StepError(
            f"step {step.id}: its code has changed since this run began: {code_file(step.fn)}; run again"
        )


def _unreadable(step_id: str, error: SyntaxError) -> StepError:
    place = f"{error.filename}, line {error.lineno}"
    told = StepError(
        f"step {step_id}: its code cannot be read any more: {place}: {error.msg}; correct it, and run again"
    )
    told.__cause__ = error
    return told


def _never_begun(error: Exception) -> SentBroken:
    return SentBroken(send_error(error), None, 0.0, is_retried=False)


def _refresh(step: StepSpec) -> None:
    """What this process remembers of the stores may be of former builds: others build as well."""
    for prefix in {str(each.output_path_prefix) for each in (step, *step.deps)}:
        open_store(prefix).refresh()
