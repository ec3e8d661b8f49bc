"""The hash of what a function says: its source without comments, docstring and layout."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
import tokenize
from collections.abc import Callable
from types import CodeType
from typing import Any

# The file may be another one than was imported, so that its lines say anything.
_NO_SOURCE = (OSError, TypeError, IndexError, SyntaxError, tokenize.TokenError)

# By address, for two codes of different source can be equal; with the object itself, so that no other one
# gets the address. Most steps share the few functions of a program.
_HASHES: dict[int, tuple[CodeType | type, str]] = {}


def code_hash(fn: Callable[..., Any]) -> str:
    """SHA-256 in hex of the source of `fn` as a syntax tree; empty when there is no source.

    Partials, methods and wrappers are looked through, a class stands by all of its source, and another
    callable object by its `__call__`. What the function calls is not looked at.
    """
    source = _plain(fn)
    code = getattr(source, "__code__", source)
    if not isinstance(code, CodeType | type):
        return ""
    if id(code) not in _HASHES:
        _HASHES[id(code)] = (code, _of_source(code))
    return _HASHES[id(code)][1]


def _plain(fn: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(fn, functools.partial) or hasattr(fn, "__wrapped__"):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__wrapped__
    return fn if hasattr(fn, "__code__") or isinstance(fn, type) else type(fn).__call__


def _of_source(code: CodeType | type) -> str:
    try:
        source = textwrap.dedent(inspect.getsource(code))
    except _NO_SOURCE:  # typed into a prompt, generated, or edited since: nothing to compare later
        return ""
    return hashlib.sha256(_normalised(source).encode()).hexdigest()


def _normalised(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a lambda in the middle of an expression: its lines are no statement
        return "\n".join(line.strip() for line in source.splitlines())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:]
    return ast.dump(tree)
