"""Calls into the `tokenizers` library, which fails in ways of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def call(act: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """What `act` returns.

    Raises:
        ValueError: it failed. The library has no kind of error of its own, and for what its authors thought
            impossible, as damaged files have it, one that `except Exception` does not see.
    """
    try:
        return act(*given, **named)
    except Exception as error:
        raise ValueError(str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"the tokenizers library gave up: {error}") from error
