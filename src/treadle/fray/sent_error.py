"""What a body raised in another process, as it arrives here: with its type, its place and its causes.

An exception pickles as its type, its arguments and its attributes, and often badly: `__init__` is called
again with other arguments than before, a frozen one takes no attributes. So it is sent in the first of these
forms that gives the same type and message again: as pickle has it, as its parts put together without
`__init__`, in words as a `RemoteError`. Pickle drops tracebacks and causes: they are sent beside it.
"""

from __future__ import annotations

import io
import pickle
import sys
import traceback
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import cloudpickle

from treadle.errors import RemoteError
from treadle.kernel import add_note

_CAUSES = 10
_FRAMES = 50


class Frame(NamedTuple):
    """One line of a traceback; `line` counts from 1."""

    file: str
    function: str
    line: int


class SentError(NamedTuple):
    """An exception on its way. `data` is its pickle, None where it is told in `words`."""

    data: bytes | None
    kind: str
    message: str
    words: str
    frames: tuple[Frame, ...]
    cause: SentError | None
    context: SentError | None
    is_context_hidden: bool


def send_error(error: BaseException, depth: int = _CAUSES) -> SentError:
    """The exception in a form that can be pickled, with up to `depth` causes one behind the other."""
    data = _pickled(error)
    cause, context = error.__cause__, error.__context__
    return SentError(
        data=data,
        kind=type(error).__name__,
        message=_message(error),
        words="" if data is not None else _words(error),
        frames=_frames(error.__traceback__),
        cause=send_error(cause, depth - 1) if cause is not None and depth else None,
        context=send_error(context, depth - 1) if context is not None and cause is None and depth else None,
        is_context_hidden=error.__suppress_context__,
    )


def receive_error(sent: SentError) -> BaseException:
    """The exception; its traceback has the lines of the process where it was raised."""
    error = _loaded(sent.data) if sent.data is not None else None
    if error is None:
        error = RemoteError(sent.kind, sent.message)
        add_note(error, f"where it was raised, in another process:\n{sent.words or '(unknown)'}")
    for name, value in (("__cause__", sent.cause), ("__context__", sent.context)):
        if value is not None:  # past a frozen exception, which refuses
            BaseException.__setattr__(error, name, receive_error(value))
    BaseException.__setattr__(error, "__suppress_context__", sent.is_context_hidden)
    return error.with_traceback(_traceback(sent.frames))


def _pickled(error: BaseException) -> bytes | None:
    for form in (cloudpickle.dumps, _in_parts):
        try:
            data: bytes = form(error)
            back = pickle.loads(data)  # noqa: S301 - made in the line above
            if type(back) is type(error) and _message(back) == _message(error):
                return data
        except Exception:  # noqa: BLE001, S112 - the next form may do, and words always do
            continue
    return None


def _loaded(data: bytes) -> BaseException | None:
    try:
        error = pickle.loads(data)  # noqa: S301 - from a worker of this process
    except Exception:  # noqa: BLE001 - its class cannot be found or built here: it is told in words
        return None
    return error if isinstance(error, BaseException) else None


class _PartsPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles exceptions, also those within others, as their parts."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, BaseException) and type(value).__reduce__ is BaseException.__reduce__:
            return _put_together, (type(value), value.args, vars(value))
        return super().reducer_override(value)


def _in_parts(error: BaseException) -> bytes:
    file = io.BytesIO()
    _PartsPickler(file).dump(error)
    return file.getvalue()


def _put_together(
    kind: type[BaseException], arguments: tuple[Any, ...], attributes: Mapping[str, Any]
) -> BaseException:
    error = kind.__new__(kind, *arguments)
    BaseException.__setattr__(error, "args", arguments)
    vars(error).update(attributes)
    return error


def said(error: BaseException) -> str:
    """`Type: message`, also for an exception that fails to give its message."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failure:  # noqa: BLE001 - the broken message must not hide that there was an error
        return f"{type(error).__name__}: (no message: its __str__ raised {type(failure).__name__})"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - then there is none to be had, here or there
        return said(error)


def _words(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001 - an exception whose message cannot be had still has a place
        return "".join(traceback.format_tb(error.__traceback__)) + said(error)


def _frames(trace: TracebackType | None) -> tuple[Frame, ...]:
    """The lines of a traceback; of a very long one the first and the last."""
    found = [
        Frame(frame.f_code.co_filename, frame.f_code.co_name, line)
        for frame, line in traceback.walk_tb(trace)
    ]
    return tuple(found if len(found) <= _FRAMES else found[: _FRAMES // 2] + found[-_FRAMES // 2 :])


def _traceback(frames: tuple[Frame, ...]) -> TracebackType | None:
    trace: TracebackType | None = None
    for each in reversed(frames):
        trace = TracebackType(trace, _frame(each), -1, max(each.line, 1))
    return trace


_LOOK = compile("here = look()", "", "exec")


def _frame(at: Frame) -> FrameType:
    """A frame of that file and function: a traceback can only be made of real ones."""
    names: dict[str, Any] = {"look": sys._getframe}
    code = _LOOK.replace(co_filename=at.file, co_name=at.function, co_qualname=at.function)
    exec(code, names)  # noqa: S102 - the two lines above
    frame: FrameType = names["here"]
    names.clear()
    return frame
