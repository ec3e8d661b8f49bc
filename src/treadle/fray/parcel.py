"""What goes to a worker in another process, and what comes back: bytes.

1. `pack_call`: the function and the travelling values of whoever submits it
2. `carry_out`: in the worker, the call is made under those values, as the job that runs there
3. `open_outcome`: what it returned, or what it raised, for whoever asks for the result

Functions of scripts and notebooks go by value, those of modules by name; for exceptions see `sent_error`.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from treadle.errors import ResultTooLargeError
from treadle.fray.current import set_current_client
from treadle.fray.pickling import FOR_RESULTS, pickled
from treadle.fray.protocol import Client
from treadle.fray.running_job import RunningJob, running
from treadle.fray.sent_error import receive_error, send_error
from treadle.fray.travelling import luggage, unpacked
from treadle.kernel import add_note

LARGEST_RESULT = 1 << 30
"""Bytes; the default of what a job may return."""

_NOTHING = nullcontext()
_RETURNED, _RAISED = b"=", b"!"


def pack_call(
    name: str, fn: Callable[[], Any], *, kind: str = "job", parts: Iterable[tuple[str, Any]] = ()
) -> bytes:
    """The call of `fn`, with the travelling values of the caller.

    Messages call it by `kind` and `name`, and what cannot be sent by where it is among `parts`, each with its
    name; by default in `fn`.

    Raises:
        NotSendableError: it cannot be pickled; names the object and the path to it.
    """
    values = luggage()
    carried = [(f"travelling value {each.name!r}", value) for each, value in values]
    return pickled((fn, values), f"{kind} {name!r}", within=[*(parts or [("", fn)]), *carried])


def carry_out(
    call: bytes | bytearray, job: RunningJob, client: Client, largest: int = LARGEST_RESULT
) -> bytes:
    """Make a packed call as `job`, with `client` as the current one; what came of it, packed.

    A result of more than `largest` bytes is not sent; a `ResultTooLargeError` is, in its place.
    """
    try:
        fn, values = _unpacked_call(call)
        with running(job), set_current_client(client), unpacked(values) if values else _NOTHING:
            result = fn()
        return pack_result(result, largest)
    except BaseException as error:  # noqa: BLE001 - raised again by whoever asks for the result
        return pack_error(error)


def _unpacked_call(call: bytes | bytearray) -> Any:
    try:
        return pickle.loads(call)  # noqa: S301 - from the process that this one works for
    except ImportError as error:
        add_note(error, f"the worker could not load what the job is made of; it looks in {sys.path}")
        raise


def returned(outcome: bytes | bytearray) -> bool:
    """Whether the call returned; else it raised."""
    return outcome[:1] == _RETURNED


def open_outcome(outcome: bytes | bytearray) -> Any:
    """What the call returned; what it raised is raised, with the lines of that process in its traceback."""
    data = memoryview(outcome)[1:]
    if not returned(outcome):
        raise receive_error(pickle.loads(data))  # noqa: S301 - from a worker of this process
    try:
        return pickle.loads(data)  # noqa: S301 - from a worker of this process
    except Exception as error:
        add_note(error, "the job has returned, and its result cannot be unpickled here")
        raise


def pack_result(result: object, largest: int = LARGEST_RESULT) -> bytes:
    """The outcome of a call that returned `result`.

    Raises:
        NotSendableError: it cannot be pickled.
        ResultTooLargeError: it takes more than `largest` bytes.
    """
    data = pickled(result, "the result of the job", advice=FOR_RESULTS)
    if len(data) > largest:
        raise ResultTooLargeError(len(data), largest)
    return _RETURNED + data


def pack_error(error: BaseException, *, traced: bool = True) -> bytes:
    """The outcome of a call that raised `error`; unless `traced`, without where it was raised."""
    sent = send_error(error)
    return _RAISED + pickle.dumps(sent if traced else sent._replace(frames=()))
