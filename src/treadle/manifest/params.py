"""Typed params: the defaults that a manifest declares, under the values that a caller gives.

A given text is read as YAML would read the word, so the text `5` of a command line and the number 5 are
the same. Nothing is guessed: 1 is not a bool, and neither 2.5 nor true is an int.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from treadle.errors import nearest
from treadle.manifest.model import ParamSection
from treadle.manifest.places import PlainValue, Section, Trail, nearest_entry
from treadle.manifest.problems import Problems, brief, describe, listing
from treadle.manifest.scalars import read_word


@dataclass(frozen=True)
class Params:
    """The value of each declared param: text, number, bool, None, or a tuple of these.

    `unset` names the declared params that have no usable value; it is empty unless problems were noted.
    """

    values: Mapping[str, PlainValue]
    unset: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """All declared names, sorted."""
        return tuple(sorted({*self.values, *self.unset}))


@dataclass(frozen=True)
class _Refusal:
    expected: str


def resolve_params(
    tree: Section,
    declared: Mapping[str, ParamSection | None],
    overlay: Mapping[str, object],
    problems: Problems,
) -> Params:
    """Defaults under `overlay`, each value checked; a declaration of None could not be read."""
    values: dict[str, PlainValue] = {}
    for name, section in declared.items():
        value = None if section is None else _resolve_one(tree, name, section, overlay, problems)
        if value is not None:
            values[name] = value[0]
    for name in sorted(set(overlay) - set(declared)):
        known = ", ".join(sorted(declared)) or "none is declared"
        place = nearest_entry(tree, ("params",)).key
        problems.add_absent(
            place, ("params", name), f"a declared param ({known})", brief(name), nearest(name, list(declared))
        )
    return Params(values, frozenset(set(declared) - set(values)))


def _resolve_one(
    tree: Section, name: str, section: ParamSection, overlay: Mapping[str, object], problems: Problems
) -> tuple[PlainValue] | None:
    """A one-tuple of the value (which may be None), or None when there is no usable value."""
    if not _is_sound(tree, name, section, problems):
        return None
    place = nearest_entry(tree, ("params", name)).key
    if name not in overlay:
        if section.required:
            problems.add(place, ("params", name), f"a value ({section.type}, required)", _none_given(name))
            return None
        return (section.default,)
    value = _read(section, overlay[name], given=True)
    if isinstance(value, _Refusal):
        found = f"the given value {brief(overlay[name])}; give another"
        problems.add(place, ("params", name), value.expected, found)
        return None
    return (value,)


def _none_given(name: str) -> str:
    return f"none; give one (--param {name}=VALUE), or declare a default"


def _is_sound(tree: Section, name: str, section: ParamSection, problems: Problems) -> bool:
    """Whether the declaration agrees with itself; what does not is noted."""
    flaws = list(_flaws(section))
    for below, expected in flaws:
        trail = ("params", name, *below)
        node = nearest_entry(tree, trail).node
        problems.add(node.place, trail, expected, describe(node))
    return not flaws


def _flaws(section: ParamSection) -> Iterator[tuple[Trail, str]]:
    """The key of each part that contradicts the rest, and what was expected there."""
    member = ParamSection(type=section.type)
    for index, choice in enumerate(section.choices or ()):
        if section.type != "list" and isinstance(refusal := _read(member, choice, given=False), _Refusal):
            yield ("choices", index), refusal.expected
    if section.min is not None and section.max is not None and section.min > section.max:
        yield ("max",), f"at least min, {section.min:.15g}"
    for bound in ("min", "max"):
        if section.type not in ("int", "float") and getattr(section, bound) is not None:
            yield (bound,), f"no bound for the type {section.type}"
    yield from _default_flaws(section)


def _default_flaws(section: ParamSection) -> Iterator[tuple[Trail, str]]:
    if isinstance(section.default, str) and "${" in section.default:
        yield ("default",), "a value without placeholders"
    elif section.default is not None:
        default = _read(section, section.default, given=False)
        if isinstance(default, _Refusal):
            yield ("default",), default.expected


def _read(section: ParamSection, value: object, *, given: bool) -> PlainValue | _Refusal:
    """The value as the declared type. Text stands for other types only when it was `given` by a caller."""
    if given and isinstance(value, os.PathLike):
        value = os.fspath(value)
    if given and isinstance(value, str) and section.type not in ("str", "path"):
        value = _from_text(section.type, value)
    kind = _TYPES[section.type]
    typed = kind.read(value)
    if typed is None:
        return _Refusal(kind.name)
    return _within(section, typed)


def _from_text(kind: str, text: str) -> object:
    if kind == "list":
        return tuple(read_word(word.strip()) for word in text.split(",")) if text.strip() else ()
    return read_word(text.strip())


def _within(section: ParamSection, value: PlainValue) -> PlainValue | _Refusal:
    """`value` when it keeps to choices, min and max."""
    members = value if isinstance(value, tuple) else (value,)
    if section.choices is not None and any(each not in section.choices for each in members):
        return _Refusal(listing(section.choices))
    if isinstance(value, (int, float)):
        if section.min is not None and value < section.min:
            return _Refusal(f"at least {section.min:.15g}")
        if section.max is not None and value > section.max:
            return _Refusal(f"at most {section.max:.15g}")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _path(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond the range of floats
        return None
    return number if math.isfinite(number) else None


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _list(value: object) -> tuple[PlainValue, ...] | None:
    if not isinstance(value, (list, tuple)):
        return None
    scalars = tuple(each for each in value if isinstance(each, (str, int, float)))
    return scalars if len(scalars) == len(value) else None


class _Type(NamedTuple):
    """What messages call a type, and its reading of a value: None for a value of another type."""

    name: str
    read: Callable[[object], PlainValue]


_TYPES: Mapping[str, _Type] = {
    "str": _Type("text", _text),
    "path": _Type("a path", _path),
    "int": _Type("a whole number", _int),
    "float": _Type("a number", _float),
    "bool": _Type("true or false", _bool),
    "list": _Type("a list of single values", _list),
}
