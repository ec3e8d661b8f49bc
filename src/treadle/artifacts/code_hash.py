"""The hash of what a function says: its source without comments, docstring and layout, else its bytecode."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import sys
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
    """SHA-256 in hex of the source of `fn` as a syntax tree; empty when it is not written in Python.

    Without source, as in `python -c`, it is that of the bytecode, `<version of Python>:<sha>`. Hashes of
    two kinds say nothing of each other; see `comparable`.

    Partials, methods and wrappers are looked through, a class stands by all of its source, and another
    callable object by its `__call__`. What the function calls is not looked at.
    """
    code = _code(fn)
    if not isinstance(code, CodeType | type):
        return ""
    if id(code) not in _HASHES:
        _HASHES[id(code)] = (code, _of_source(code))
    return _HASHES[id(code)][1]


def loaded_hash(fn: Callable[..., Any]) -> str:
    """`bytecode_hash` of `fn` as it is loaded here, whatever its file says by now; empty for a class."""
    code = _code(fn)
    return bytecode_hash(code) if isinstance(code, CodeType) else ""


def code_file(fn: Callable[..., Any]) -> str:
    """The file that `fn` is from; empty when it is not written in Python."""
    code = _code(fn)
    if isinstance(code, type):
        return getattr(sys.modules.get(code.__module__), "__file__", None) or ""
    return code.co_filename if isinstance(code, CodeType) else ""


def comparable(one: str, other: str) -> bool:
    """Whether both hashes are there, of one kind: of source, or of bytecode of one version of Python."""
    return bool(one and other) and one.rpartition(":")[0] == other.rpartition(":")[0]


@functools.lru_cache(maxsize=1024)
def bytecode_hash(code: CodeType) -> str:
    """`<version of Python>:<sha>` of the instructions, wherever in a file they stand."""
    digest = hashlib.sha256(repr(_instructions(code)).encode()).hexdigest()
    return f"{sys.implementation.cache_tag}:{digest}"


def _code(fn: Callable[..., Any]) -> object:
    source = _plain(fn)
    return getattr(source, "__code__", source)


def _plain(fn: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(fn, functools.partial) or hasattr(fn, "__wrapped__"):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__wrapped__
    return fn if hasattr(fn, "__code__") or isinstance(fn, type) else type(fn).__call__


def _of_source(code: CodeType | type) -> str:
    try:
        source = textwrap.dedent(inspect.getsource(code))
    except _NO_SOURCE:  # typed into a prompt, generated, or edited since
        return bytecode_hash(code) if isinstance(code, CodeType) else ""
    return hashlib.sha256(_normalised(source).encode()).hexdigest()


def _instructions(code: CodeType) -> tuple[object, ...]:
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, code.co_exceptiontable, counts, names, tuple(map(_constant, code.co_consts))


def _constant(value: object) -> object:
    if isinstance(value, CodeType):
        return _instructions(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


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
