"""Pickling for other processes, with an error that names what cannot be sent."""

from __future__ import annotations

import io
import pickle
from collections import ChainMap
from collections.abc import Sequence
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

from treadle.errors import NotSendableError
from treadle.fray.culprit import find_culprit, is_too_deep

FOR_RESULTS = "return plain values, such as a list, or write a file and return its path"
"""What to do about a result that cannot be sent."""


def pickled(
    value: Any, what: str, *, within: Sequence[tuple[str, Any]] | None = None, advice: str | None = None
) -> bytes:
    """The value as bytes; functions and classes of scripts and notebooks by value, others by name.

    `within` are the parts that a path to an object at fault may begin at, each with its name there; by
    default that is the value itself. A part with an empty name is called after what it is.

    Raises:
        NotSendableError: something in it cannot be pickled; names the path to it. `what` is what the message
            calls the value, `advice` what to do.
    """
    if type(value) in _PLAIN:  # the usual results of jobs, for which setting up the rest takes longest
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    try:
        return _dumped(value)
    except MemoryError:
        raise
    except Exception as error:
        raise _not_sendable(error, what, [("", value)] if within is None else within, advice) from error


def _reduced_code(code: CodeType) -> tuple[Any, ...]:
    build, args, *rest = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return build, tuple(code.co_filename if each == _NOWHERE else each for each in args), *rest


_NOWHERE = "<dynamic-code>"  # what cloudpickle puts in place of the file
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


class TracedPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Keeps where code is from, so that tracebacks of other processes show the lines."""

    dispatch_table: ClassVar[ChainMap[Any, Any]] = ChainMap(
        {CodeType: _reduced_code}, cloudpickle.Pickler.dispatch_table
    )


def _dumped(value: Any) -> bytes:
    with io.BytesIO() as file:
        TracedPickler(file).dump(value)
        return file.getvalue()


def _not_sendable(
    error: Exception, what: str, roots: Sequence[tuple[str, Any]], advice: str | None
) -> NotSendableError:
    further = [] if advice is None else [advice]
    if is_too_deep(error):
        return NotSendableError(what, "", "it is nested too deeply to be pickled", *further)
    path, reason = find_culprit(roots)
    return NotSendableError(what, " -> ".join(path), reason or str(error), *further)
