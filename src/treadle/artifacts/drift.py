"""What differs between two recipes: the fields, by the paths that a person reads, old and new.

It compares canonical forms (see `fingerprint`). Containers are gone into; what stands for one value,
such as a set, an array, an enum or a step, differs as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.artifacts.canonical_text import is_step, render
from treadle.artifacts.json_form import Json

_WIDTH = 80
_LEAD = 12
_SHOWN = 10


@dataclass(frozen=True)
class FieldChange:
    """One field that differs; `old` and `new` are short texts, or "absent"."""

    path: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}: {self.old} → {self.new}"


def differences(old: Json, new: Json) -> tuple[FieldChange, ...]:
    """The fields in which two canonical forms differ; none when they are equal."""
    return tuple(_changes("", old, new))


def dep_changes(old: Iterable[str], new: Iterable[str]) -> tuple[FieldChange, ...]:
    """How dependencies differ, given by their ids, sorted by name."""
    before, after = _by_name(set(old)), _by_name(set(new))
    found = []
    for name in sorted(before.keys() | after.keys()):
        gone = sorted(before.get(name, set()) - after.get(name, set()))
        come = sorted(after.get(name, set()) - before.get(name, set()))
        if gone or come:
            texts = (", ".join(gone) or "absent", ", ".join(come) or "absent")
            found.append(FieldChange(_inside("deps", name), *texts))
    return tuple(found)


def recipe_changes(
    old: Json, new: Json, old_deps: Collection[str] = (), new_deps: Collection[str] = ()
) -> tuple[FieldChange, ...]:
    """How two recipes differ, in their configs and in their dependencies, given by their ids.

    A dependency that is another one among the arguments is not named a second time.
    """
    fields = differences(old, new)
    named = {(each.old, each.new) for each in fields}
    deps = (each for each in dep_changes(old_deps, new_deps) if (each.old, each.new) not in named)
    return (*fields, *deps)


def describe_changes(changes: Sequence[FieldChange]) -> str:
    """The changes in one line, the first of very many."""
    more = len(changes) - _SHOWN
    shown = "; ".join(map(str, changes[:_SHOWN]))
    return f"{shown}; and {more} more" if more > 0 else shown


def _changes(path: str, old: Any, new: Any) -> Iterator[FieldChange]:
    parts = _parts(old, new)
    if parts is None:
        if _json(old) != _json(new):
            yield _change(path, render(old), render(new))
        return
    before, after = parts
    for key in [*before, *(key for key in after if key not in before)]:
        place = _placed(path, key)
        if key not in after:
            yield _change(place, render(before[key]), "absent")
        elif key not in before:
            yield _change(place, "absent", render(after[key]))
        else:
            yield from _changes(place, before[key], after[key])


def _parts(old: Any, new: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The parts of two containers of one kind, by the end of their path; None for anything else."""
    if isinstance(old, list) and isinstance(new, list):
        return _numbered(old), _numbered(new)
    if not (isinstance(old, dict) and isinstance(new, dict)) or old.keys() != new.keys() or is_step(old):
        return None
    if old.keys() == {"dict"}:
        return _keyed(old["dict"]), _keyed(new["dict"])
    if old.keys() == {"tuple"}:
        return _numbered(old["tuple"]), _numbered(new["tuple"])
    if old.get("type") == new.get("type"):
        if old.keys() == {"fields", "type"}:
            return _named(old["fields"]), _named(new["fields"])
        if old.keys() == {"content", "type"}:
            return _parts(old["content"], new["content"])
    return None


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {f"[{number}]": each for number, each in enumerate(items)}


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    return {_inside("", name): each for name, each in fields.items()}


def _keyed(pairs: list[Any]) -> dict[str, Any]:
    return {_inside("", key) if isinstance(key, str) else f"[{render(key)}]": each for key, each in pairs}


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]"


def _placed(path: str, end: str) -> str:
    return path + end if path else end.removeprefix(".")


def _change(path: str, old: str, new: str) -> FieldChange:
    start = 0
    if max(len(old), len(new)) > _WIDTH:  # both from where they begin to differ, else they could look alike
        same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(min(old, new)))
        start = max(0, same - _LEAD)
    return FieldChange(path or "value", _cut(old, start), _cut(new, start))


def _cut(text: str, start: int) -> str:
    if len(text) <= _WIDTH and (not start or text == "absent"):
        return text
    end = start + _WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _by_name(ids: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in ids:
        name = each.rpartition("@" if "@" in each else "-")[0]
        found.setdefault(name, set()).add(each)
    return found


def _json(tree: Json) -> str:
    return json.dumps(tree, sort_keys=True)
