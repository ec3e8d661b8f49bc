"""What goes to another process with a step, and what comes back of it."""

import pickle
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from treadle import step
from treadle.artifacts import code_hash
from treadle.errors import ArgumentError, NotSendableError, RemoteError, StepError
from treadle.execution import StepRunner, StepSpec, lower
from treadle.execution.blame import describe
from treadle.execution.retry import Retry
from treadle.execution.running.sendable import check_sendable
from treadle.execution.running.sending import attempt_elsewhere, pack, received
from treadle.execution.running.task import Broken, Served, Task
from treadle.execution.step_spec import with_dependencies
from treadle.fray import Travelling
from treadle.fray.sent_error import receive_error, send_error


class CodeError(Exception):
    """One whose `__init__` takes other arguments than it passes on."""

    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.hint = hint


class PrefixedError(Exception):
    """One whose message would grow each time it is unpickled."""

    def __init__(self, text: str) -> None:
        super().__init__(f"prefix: {text}")


@dataclass(frozen=True)
class FrozenError(Exception):
    shard: int

    def __str__(self) -> str:
        return f"shard {self.shard}"


class LockedError(ValueError):
    """One that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class SilentError(Exception):
    def __str__(self) -> str:
        raise TypeError("no words")


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - the exception is what is wanted
        return caught


def sent(error: BaseException) -> BaseException:
    return receive_error(pickle.loads(pickle.dumps(send_error(error))))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        CodeError(7, hint="look"),
        PrefixedError("x"),
        FrozenError(3),
        FileNotFoundError(2, "No such file", "a.txt"),
        KeyError("k"),
        KeyboardInterrupt(),
        SystemExit(3),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ExceptionGroup("both", [FrozenError(1), CodeError(2, hint="x")]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_error_arrives_with_type_message_and_place(error: BaseException) -> None:
    caught = raised(error)
    back = sent(caught)
    assert type(back) is type(caught)
    assert str(back) == str(caught)
    assert vars(back).keys() == vars(caught).keys()
    assert describe(back) == describe(caught), "the line of the body is told"
    assert "in raised" in "".join(traceback.format_exception(back))


def test_one_that_cannot_be_pickled_arrives_in_words() -> None:
    back = sent(raised(LockedError("held")))
    assert isinstance(back, RemoteError)
    assert (back.kind, back.message) == ("LockedError", "held")
    assert "in raised" in back.__notes__[0]
    assert describe(back).startswith("RemoteError: LockedError: held (test_sending.py:")


def test_one_without_a_message_arrives_all_the_same() -> None:
    assert "SilentError" in describe(sent(raised(SilentError())))


def test_notes_and_causes_arrive() -> None:
    try:
        try:
            raise FrozenError(1)
        except FrozenError as first:
            first_line = describe(first)
            raise CodeError(2, hint="x") from first
    except CodeError as error:
        error.add_note("while counting")
        back = sent(error)
    assert back.__notes__ == ["while counting"]
    assert back.__cause__ is not None
    assert describe(back.__cause__) == first_line
    assert back.__suppress_context__


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert str(sent(one)) == "one"


def test_a_very_deep_traceback_is_cut() -> None:
    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        raise ValueError("deep")

    with pytest.raises(ValueError, match="deep") as caught:
        deep(300)
    back = sent(caught.value)
    assert len(traceback.extract_tb(back.__traceback__)) == 50
    assert describe(back) == describe(caught.value)


# Tasks


@step
def add(x: int, n: int = 0) -> int:
    return x + n


@step
def total(parts: list[int]) -> int:
    return sum(parts)


def task(spec: StepSpec, **options: Any) -> Task:
    return Task(spec, {dep.id: "0" * 32 for dep in spec.deps}, "run", **options)


def test_a_task_of_a_long_chain_is_small(tmp_path: Path) -> None:
    """Sent with its ancestors, a chain of 10,000 would take 25 GB."""
    handle = add(0)
    for n in range(1_000):
        handle = add(handle, n)
    chain = with_dependencies(lower(handle, tmp_path))
    sizes = [len(pack(task(chain[place]))) for place in (1, 500, 1_000)]
    assert max(sizes) < 3_000
    assert max(sizes) - min(sizes) < 100, "the same, however long the chain is"


def test_a_task_grows_with_its_own_dependencies_only(tmp_path: Path) -> None:
    wide = lower(total([add(n) for n in range(1_000)]), tmp_path)
    assert len(pack(task(wide))) < 500 * 1_000


def test_a_step_by_hand_may_capture_its_dependency(tmp_path: Path) -> None:
    def after(dep: StepSpec) -> Callable[[str], object]:
        return lambda path: (dep.id, dep.output_path, dep.version, dep.config, path)

    spec = StepSpec("a", lambda path: 0, hash_attrs={"n": -1}, output_path_prefix=str(tmp_path))
    for n in range(200):
        spec = StepSpec("a", after(spec), [spec], {"n": n}, output_path_prefix=str(tmp_path))
    data = pack(task(spec))
    assert len(data) < 5_000
    opened = Task(*pickle.loads(data)[1])
    assert opened.step == spec
    assert opened.step.fn is not None
    dep = spec.deps[0]
    assert opened.step.fn("here") == (dep.id, dep.output_path, None, dep.config, "here")
    [cut] = opened.step.deps
    assert (cut.id, cut.output_path, cut.identity) == (dep.id, dep.output_path, dep.identity)
    assert cut.fn is not None
    assert code_hash(cut.fn) == "", "no other code than before: it is not known"
    with pytest.raises(StepError, match="without its function"):
        cut.fn("x")


def test_what_the_planner_knows_is_sent_along(tmp_path: Path) -> None:
    spec = lower(add(1), tmp_path)
    opened = Task(*pickle.loads(pack(task(spec, attempt=3, known=2, forced=True)))[1])
    assert spec.fn is not None
    assert (opened.attempt, opened.known, opened.forced) == (3, 2, True)
    assert opened.code == code_hash(spec.fn)
    assert opened.origin is not None


def test_an_attempt_elsewhere_gives_what_it_gives_here(tmp_path: Path) -> None:
    spec = lower(add(1, 2), tmp_path)
    served = received(pickle.loads(pickle.dumps(attempt_elsewhere(spec.id, pack(task(spec))))))
    assert isinstance(served, Served)
    assert StepRunner().run([spec])[spec.id] == 3


def fails(path: str) -> None:
    raise LockedError("held")


@pytest.mark.parametrize(("on", "expected"), [(ValueError, True), (KeyError, False)])
def test_whether_it_is_retried_is_seen_where_the_error_still_has_its_type(
    tmp_path: Path, on: type[Exception], expected: bool
) -> None:
    spec = StepSpec("a", fails, output_path_prefix=str(tmp_path), retry=Retry(on=on))
    broken = received(attempt_elsewhere(spec.id, pack(task(spec))))
    assert isinstance(broken, Broken)
    assert isinstance(broken.outcome.error, RemoteError)
    assert broken.is_retried is expected
    assert f"in step {spec.id}, output folder" in "".join(traceback.format_exception(broken.outcome.error))


def test_a_task_that_cannot_be_read_is_the_failure_of_its_step(tmp_path: Path) -> None:
    broken = received(attempt_elsewhere("a-1", b"cno.such.module\nThing\n."))
    assert isinstance(broken, Broken)
    assert isinstance(broken.outcome.error, ModuleNotFoundError)
    assert "step a-1 was read by the process" in broken.outcome.error.__notes__[0]


# What is refused


def test_what_cannot_be_pickled_is_named_with_its_step(tmp_path: Path) -> None:
    lock = threading.Lock()
    fine = lower(add(1), tmp_path)
    bad = StepSpec("bad", lambda path: lock, output_path_prefix=str(tmp_path))
    with pytest.raises(NotSendableError, match=rf"step {bad.id} cannot be sent to another process.*lock"):
        check_sendable([fine, bad])


def test_a_store_in_memory_is_refused_with_its_step() -> None:
    spec = lower(add(add(1)), "memory://somewhere")
    with pytest.raises(ArgumentError, match=rf"step {spec.id}: .* other processes can reach, got memory://"):
        check_sendable([spec])


def test_a_dependency_in_memory_is_refused_too(tmp_path: Path) -> None:
    dep = StepSpec("a", fails, output_path_prefix="memory://x")
    spec = StepSpec("b", fails, [dep], output_path_prefix=str(tmp_path))
    with pytest.raises(ArgumentError, match=f"step {spec.id}: .* of step {dep.id}"):
        check_sendable([spec])


def test_a_travelling_value_may_come_before_the_module_that_defines_it() -> None:
    """A worker reads the values of a job before it imports what the job needs."""
    early: Travelling[str] = Travelling("defined twice")
    with early.use("blue"):
        late: Travelling[str] = Travelling("defined twice")
        assert late.get() == "blue"
