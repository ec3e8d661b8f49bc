"""Canonical forms as short text that looks like the Python that they were made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.artifacts.json_form import Json

STEP_TAG = "@step"  # no field of a dataclass has such a name
_DIGITS = 12


def is_step(tree: Json) -> bool:
    """Whether this form stands for a step."""
    return isinstance(tree, dict) and tree.keys() == {STEP_TAG}


def render(tree: Any) -> str:
    """The form as text: types without their modules, steps by their ids, large content by its hash."""
    if isinstance(tree, list):
        return f"[{', '.join(map(render, tree))}]"
    if not isinstance(tree, dict):
        return repr(tree)
    for tag, write in _WRITERS.items():
        if tag in tree:
            return write(tree)
    return ", ".join(f"{tag} {content}" for tag, content in tree.items())


def _dict(tree: dict[str, Any]) -> str:
    return f"{{{', '.join(f'{render(key)}: {render(each)}' for key, each in tree['dict'])}}}"


def _tuple(tree: dict[str, Any]) -> str:
    items = [render(each) for each in tree["tuple"]]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _set(tree: dict[str, Any]) -> str:
    return f"{{{', '.join(map(render, tree['set']))}}}" if tree["set"] else "set()"


def _fields(tree: dict[str, Any]) -> str:
    content = ", ".join(f"{name}={render(each)}" for name, each in sorted(tree["fields"].items()))
    return f"{_short(tree['type'])}({content})"


def _array(tree: dict[str, Any]) -> str:
    content = render(tree["items"]) if "items" in tree else tree["sha256"][:_DIGITS]
    return f"array({tree['array']}, {tree['shape']}, {content})"


def _step(tree: dict[str, Any]) -> str:
    identity = str(tree[STEP_TAG])
    name, _, digits = identity.rpartition("-")
    return identity if "@" in identity else f"{name}-{digits[:_DIGITS]}"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


_WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {
    STEP_TAG: _step,
    "dict": _dict,
    "tuple": _tuple,
    "set": _set,
    "fields": _fields,
    "enum": lambda tree: f"{_short(tree['type'])}.{tree['enum']}",
    "array": _array,
    "bytes": lambda tree: f"{tree['bytes']} bytes {tree['sha256'][:_DIGITS]}",
    "content": lambda tree: f"{_short(tree['type'])}({render(tree['content'])})",
    "time": lambda tree: f"time {tree['time']} {tree.get('zone', '')}".rstrip(),
    "int": lambda tree: str(tree["int"]),
    "float": lambda tree: str(tree["float"]),
    "path": lambda tree: f"Path({tree['path']!r})",
}
