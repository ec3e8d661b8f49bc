"""What must hold of steps that are to run in other processes; seen before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from treadle.errors import ArgumentError
from treadle.execution.running.sending import not_sendable
from treadle.execution.running.sent_step import SendingPickler
from treadle.execution.step_spec import StepSpec

_TOGETHER = 1_000


def check_sendable(steps: Iterable[StepSpec]) -> None:
    """See that other processes can run these steps.

    Raises:
        ArgumentError: the store of one, or of what it reads, is in the memory of this process.
        NotSendableError: one has what cannot be pickled; names both.
    """
    left = iter(steps)
    while part := list(islice(left, _TOGETHER)):
        for step in part:
            _check_store(step)
        _check_pickles(part)


def _check_store(step: StepSpec) -> None:
    for each in (step, *step.deps):
        if str(each.output_path_prefix).startswith("memory://"):
            raise ArgumentError(
                f"step {step.id}: expected a store that other processes can reach, got "
                f"{each.output_path_prefix} of step {each.id}, which is in the memory of this one: give a "
                "folder or the URL of an object store (prefix=...), or run on threads"
            )


def _check_pickles(steps: Iterable[StepSpec]) -> None:
    """With one memory for many, so that a function which they share is pickled once."""
    pickler = SendingPickler(_Nothing())
    for step in steps:
        try:
            pickler.send(step, step.fn)
        except Exception as error:
            raise not_sendable(step, error) from error


class _Nothing:
    """A file that keeps nothing."""

    def write(self, data: bytes) -> int:
        return len(data)
