"""Stages the step after the one that computes, on a thread of its own.

The pass leaves Python for most of its time; what the next step needs is reserved and planned in that time.
It is one guess: when a request ends or joins, the runner drops what was staged and the step is planned anew.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from treadle.engine.generation import Row
from treadle.engine.node import Node
from treadle.engine.resources.step import SubmoduleStep

_LOG = logging.getLogger(__name__)


class Planner:
    """Stages steps of a node, one at most."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._thread, self._process = _thread(), os.getpid()
        self._rows: Sequence[Row] = ()
        self._step: SubmoduleStep | None = None

    @contextmanager
    def staging(self, rows: Sequence[Row]) -> Iterator[None]:
        """Stage the step of these rows while the block computes the one before it, which is committed."""
        self._rows, self._step = rows, None
        if self._process != os.getpid():  # a fork, where threads do not come along
            self._thread, self._process = _thread(), os.getpid()
        staged = self._thread.submit(self._stage, rows)
        try:
            yield
        finally:
            _see_out(staged)
            self._step = staged.result()

    def declared(self, rows: Sequence[Row]) -> SubmoduleStep | None:
        """The staged step, when it is that of these rows: admitted, it uses what was staged."""
        return self._step if self._rows == rows else None

    def _stage(self, rows: Sequence[Row]) -> SubmoduleStep | None:
        """The staged step; None when there is no room, or no row."""
        if not rows:
            return None
        runner, step = self._node.runner, self._node.declare(rows)
        try:
            if not runner.pre_admit(step).ok:
                return None
            runner.pre_plan(step)
        except Exception:  # noqa: BLE001 - a plug-in resource may raise any
            # The step that computes is sound and must not fail for this; in its turn, this one raises again.
            _LOG.warning("a step could not be planned ahead", exc_info=True)
            return None
        return step


def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="treadle-planner")


def _see_out(staged: Future[SubmoduleStep | None]) -> None:
    """Wait until it is over; Ctrl-C is raised after that, when nothing more is reserved behind its back."""
    interrupt = None
    while True:
        try:
            wait((staged,))
            break
        except BaseException as error:  # noqa: BLE001 - SIGTERM has one of its own; raised below
            interrupt = error
    if interrupt is not None:
        raise interrupt
