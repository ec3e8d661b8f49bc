"""An error in words: its type and message, and where in the user's code it comes from."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from treadle.fray.sent_error import said

_OURS = str(Path(__file__).parents[1])
_THEIRS = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def describe(error: BaseException) -> str:
    """`Type: message (file.py:12 in function)`, also for an exception that fails to give its message."""
    place = _place(error)
    return f"{said(error)} ({place})" if place else said(error)


def traceback_lines(error: BaseException) -> list[str]:
    """The traceback, from where the user's code begins."""
    frames = _from_user_code(error.__traceback__)
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except Exception:  # noqa: BLE001 - an exception whose message cannot be had still has a place
        text = "".join(traceback.format_tb(frames)) + said(error)
    return text.rstrip().split("\n")


def _place(error: BaseException) -> str:
    """The innermost frame of the user's own code; empty when the error never came there."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame.f_code for frame in frames if not frame.f_code.co_filename.startswith((_OURS, *_THEIRS))]
    if not own:
        return ""
    lines = [number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code is own[-1]]
    return f"{Path(own[-1].co_filename).name}:{lines[-1]} in {own[-1].co_name}"


def _from_user_code(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without treadle's own frames at its beginning; the whole when it has no others."""
    at = trace
    while at is not None and at.tb_frame.f_code.co_filename.startswith(_OURS):
        at = at.tb_next
    return at or trace
