"""Give back what was taken: in reverse, each thing once, the first error kept.

`contextlib.ExitStack` lets a failing clean-up replace the error of the body. Here the first error
is the one that is raised, and each later one is added to it as a note.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Self

P = ParamSpec("P")


class Unwind:
    """A `with` block that undoes, on the way out, what was pushed into it.

        with Unwind() as unwind:
            lease = take_lease()
            unwind.push(lease.release)
            ...

    Leaving the block runs every undo, whether or not the body or another undo failed.
    """

    def __init__(self) -> None:
        self._undos: list[Callable[[], object]] = []

    def push(self, undo: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run `undo(*args, **kwargs)` when the block is left, before what was pushed earlier."""
        self._undos.append(lambda: undo(*args, **kwargs))

    def release(self) -> None:
        """Forget the undos: the work succeeded, and what was taken is kept."""
        self._undos.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        first = error
        while self._undos:
            try:
                self._undos.pop()()
            except BaseException as later:  # noqa: BLE001 - kept and raised below, or noted
                first = _kept(first, later)
        if first is not None and first is not error:
            raise first


def _kept(first: BaseException | None, later: BaseException) -> BaseException:
    if first is None or first is later:
        return later
    add_note(first, "while cleaning up after it: " + "".join(traceback.format_exception(later)).rstrip())
    return first


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, unless it is a frozen one, which takes none."""
    with contextlib.suppress(Exception):
        BaseException.add_note(error, note)
