"""One attempt at one step, in written order.

1. refuse a place given by hand that holds what no step has made
2. claim the step: it has one owner, among threads, processes and machines
3. when somebody committed a build since the plan was made, see whether it serves
4. run `fn(folder)` in an empty folder of this attempt
5. see that what it needs was not built anew while it ran
6. list and hash the files
7. commit: the folder becomes the output and the record stands, both or neither
8. give back the folder and the claim

An attempt that finds another owner ends at 2 and says so. One that fails at 5 is lost, and made again. One
that loses its claim on the way, because this process was paused or cut off for long, is asked to stop, and
cannot commit.
"""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from treadle.artifacts import Artifact, RecordHead, Store, heads, is_url, open_store
from treadle.artifacts.logs import keep_log, log_file
from treadle.artifacts.version import is_dev
from treadle.artifacts.workplace import WorkFolder
from treadle.errors import DependencyRebuiltError, StepError, StoppedError
from treadle.execution.freshness import built_from, standing
from treadle.execution.running.hold import Hold
from treadle.execution.running.inside import check_outside, inside
from treadle.execution.running.step_log import step_log
from treadle.execution.running.task import Broken, Served, Task, Tried
from treadle.execution.running.telling import body_of, head_of, note_of, outcome_of
from treadle.fray.running_job import noting_looks
from treadle.kernel import Cached, Done, Failed, Unwind, add_note
from treadle.storage.ledger import Claim, Held

_SHORT = 0.01
"""Seconds; a look at the dependencies takes a fiftieth of it."""


def attempt(task: Task) -> Tried:
    """Carry the task out; what it raises becomes its outcome."""
    started: datetime | None = None
    clock = time.perf_counter()
    try:
        store = open_store(str(task.step.output_path_prefix))
        hold = Hold(task.step)
        left = _check_free(task, store)
        claim = store.ledger.claim(store.place(task.step.output_path), hold.lose, task.run)
        if isinstance(claim, Held):
            return claim
        started = datetime.now(UTC)
        return _execute(task, store, claim, hold, left, clock)
    except BaseException as error:  # noqa: BLE001 - the outcome, raised at the end of the run
        add_note(error, f"in step {task.step.id}, output folder {task.step.output_path}")
        if isinstance(error, FileNotFoundError) and is_url(task.step.output_path):
            add_note(error, "the store is at a URL: write with fsspec.open(path), not with pathlib or open()")
        cancelled = started is not None and outcome_of(error) == "cancelled"
        return Broken(Failed(error), started, time.perf_counter() - clock, cancelled=cancelled)


def _execute(task: Task, store: Store, claim: Claim, hold: Hold, left: bool, clock: float) -> Served:
    step = task.step
    with Unwind() as unwind:
        unwind.push(store.ledger.release, claim)
        if left and claim.number == 1:
            shutil.rmtree(step.output_path)
        if claim.number > task.known + 1 and not task.forced:
            head = standing(step)
            if head is not None and built_from(head, task.builds):
                return Served(Cached(Artifact(store.folder(step.output_path, head))), head, 0.0)
        head = _build(task, store, claim, hold)
        unwind.release()  # the commit has given up the claim
        artifact = Artifact(store.folder(step.output_path, head))
        return Served(Done(artifact), head, time.perf_counter() - clock)


def _build(task: Task, store: Store, claim: Claim, hold: Hold) -> RecordHead:
    work = store.workplace.open(task.step.output_path)
    with Unwind() as unwind:
        unwind.push(work.close)
        started, clock = datetime.now(UTC).isoformat(), time.perf_counter()
        try:
            return _make(task, store, claim, work, started, clock)
        except BaseException as raised:  # noqa: BLE001 - it is what is raised, or the cause of that
            error = hold.explain(raised)
            # Whether or not the ledger can take the note, this is what went wrong.
            unwind.push(store.ledger.release, claim, note_of(task, claim, started, clock, error))
            raise error  # noqa: B904


def _make(task: Task, store: Store, claim: Claim, work: WorkFolder, started: str, clock: float) -> RecordHead:
    step = task.step
    value = _call(task, store, work.path)
    _check_deps(task, time.perf_counter() - clock)
    files = () if step.source else work.files()
    head = head_of(task, files, work.location, started, time.perf_counter() - clock)
    body = body_of(task, value, work.path)
    store.commit(claim, step.output_path, head, body, note_of(task, claim, started, clock, None), work)
    return head


def _call(task: Task, store: Store, work: str) -> object:
    step = task.step
    if step.fn is None:  # data that is there already
        return None
    place = store.place(step.output_path)
    with Unwind() as unwind:
        unwind.push(keep_log, store.prefix, place, task.run, task.attempt)
        log = log_file(store.prefix, place, task.run, task.attempt)
        with step_log(log, step.name, task.attempt), inside(step), noting_looks() as looks:
            value = _in_this_process(step.fn, work)
        if looks.saw_stop:
            raise StoppedError(
                f"step {step.id}: its function returned after it saw that it was to stop, so what it made is "
                "not kept; to say so by itself, let it raise StoppedError"
            )
        return value


def _in_this_process(fn: Callable[[str], object], work: str) -> object:
    """Call it. A child that it forked ends here: the folder and the claim are those of the parent."""
    parent, code = os.getpid(), 0
    try:
        return fn(work)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
    except BaseException:
        code = 1
        if os.getpid() != parent:
            traceback.print_exc()
        raise
    finally:
        if os.getpid() != parent:
            os._exit(code)


def _check_deps(task: Task, seconds: float) -> None:
    """See that what the body read, in so many seconds, is of the builds that the record will name.

    The look takes longer than a short step, so after a short one only at what every run builds anew.

    Raises:
        DependencyRebuiltError: a dependency has another build by now, so the body may have read some of each.
    """
    is_short = seconds < _SHORT
    read = (dep for dep in task.step.deps if dep.id in task.builds)
    deps = {dep.output_path: dep for dep in read if not is_short or is_dev(dep.version)}
    if not deps:
        return
    found = heads((str(dep.output_path_prefix), path) for path, dep in deps.items())
    present = {deps[path].id: head.build for path, (_, head) in found.items()}
    changed = [dep.id for dep in deps.values() if present.get(dep.id) != task.builds[dep.id]]
    if changed:
        for prefix in {str(dep.output_path_prefix) for dep in deps.values()}:
            open_store(prefix).refresh()  # the next attempt reads the values of these builds, or newer ones
        raise DependencyRebuiltError(task.step.id, changed, present)


def _check_free(task: Task, store: Store) -> bool:
    """Whether a place given by hand holds what an attempt left there that died before it could commit.

    Raises:
        StepError: it holds what no step has made, and what nobody could make again; or the step is run from
            inside itself.
    """
    step = task.step
    check_outside(step)
    if step.override_output_path is None:
        return False
    folder, place = Path(step.output_path), store.place(step.output_path)
    if task.known or store.ledger.builds(place):
        return False
    if not folder.is_file() and not (folder.is_dir() and any(folder.iterdir())):
        return False
    if store.ledger.owners([place]):  # whoever has a lease found the place free when it began
        return True
    raise StepError(
        f"step {step.id}: override_output_path: expected a new or empty folder, got {folder}, which "
        "holds what no step has made; move that away, or give the step another place"
    )
