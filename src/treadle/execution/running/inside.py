"""Which steps are being built around the code that runs here.

A step that runs itself, directly or through a run inside a run, would wait for its own lease for ever. So
would two steps of this process that run each other: each has what the other waits for. Of those of several
processes see `waits.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from treadle.errors import StepError
from treadle.execution.step_spec import StepSpec
from treadle.fray.travelling import Travelling


def check_outside(step: StepSpec) -> None:
    """See that the body of the step is not around the caller.

    Raises:
        StepError: it is.
    """
    if any(body.runs and body.output_path == step.output_path for body in _around()):
        raise StepError(
            f"step {step.id} is run from inside itself, and would wait for itself for ever; "
            "take it out of what its function runs"
        )


def begin_wait(step: StepSpec) -> None:
    """The bodies around the caller wait from now on for the owner of the step.

    Raises:
        StepError: the body of the step waits for one of them, perhaps by way of others: it would be for ever.
    """
    around = {body.output_path for body in bodies_around()}
    with _lock:
        if circle := around & (reached(_waits, step.output_path) - {step.output_path}):
            raise circle_error(step, min(circle))
        for place in around:
            _waits.setdefault(place, set()).add(step.output_path)


def bodies_around() -> tuple[inside, ...]:
    """The bodies around the caller, the outermost first, whichever processes they run in."""
    return tuple(body for body in _around() if body.runs)


def circle_error(step: StepSpec, output_path: str) -> StepError:
    """The error of who waits for a step that waits for the body of that output."""
    return StepError(
        f"step {step.id} is run from inside {output_path}, and waits for that itself: each would "
        "wait for the other for ever; take one out of what the function of the other runs"
    )


def end_wait(step: StepSpec) -> None:
    """The bodies around the caller do not wait for the owner of the step any more."""
    with _lock:
        for body in _around():
            _waits.get(body.output_path, set()).discard(step.output_path)


def reached(edges: Mapping[str, set[str]], start: str) -> set[str]:
    """Where the edges lead from the start, near or far, and the start itself."""
    found: set[str] = set()
    stack = [start]
    while stack:
        if (each := stack.pop()) not in found:
            found.add(each)
            stack.extend(edges.get(each, ()))
    return found


class inside:  # noqa: N801 - read as a word: `with inside(step):`
    """The block is the body of the step.

    A class and no generator: `contextmanager` cannot pass on an exception that is frozen.
    """

    __slots__ = ("_use", "output_path", "prefix", "runs")

    def __init__(self, step: StepSpec) -> None:
        self.output_path = step.output_path
        self.prefix = str(step.output_path_prefix)
        self.runs = False

    def __enter__(self) -> None:
        self.runs = True
        self._use = _AROUND.use((*_around(), self))
        self._use.__enter__()

    def __exit__(self, *_: object) -> None:
        self.runs = False  # a copy of the context may live on, in a thread that the body has started
        self._use.__exit__(None, None, None)
        with _lock:
            _waits.pop(self.output_path, None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent with a job: the body is around whatever that does."""
        return _sent, (self.output_path, self.prefix, self.runs)


def _sent(output_path: str, prefix: str, runs: bool) -> inside:
    body = object.__new__(inside)
    body.output_path, body.prefix, body.runs = output_path, prefix, runs
    return body


_AROUND: Travelling[tuple[inside, ...]] = Travelling("steps around")


def _around() -> tuple[inside, ...]:
    return _AROUND.get() if _AROUND.is_set else ()


_waits: dict[str, set[str]] = {}
"""Output path of a body that runs -> those of the steps whose owners it waits for."""
_lock = threading.Lock()
