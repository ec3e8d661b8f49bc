"""A value tree in which every value and every key remembers the place it was written at.

YAML gives a tree of leaves, items and sections. Merging, interpolation and validation all work on this tree,
so an error found at the very end can still point at file, line and column, in whichever file the value
was written. Trees are frozen: merging builds new ones and shares what did not change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

ScalarValue: TypeAlias = str | int | float | bool | None
PlainValue: TypeAlias = "ScalarValue | tuple[PlainValue, ...] | dict[str, PlainValue]"
Trail: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written; line and column count from 1.

    `chain` lists the lines that include the file, nearest first."""

    file: str
    line: int
    column: int
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single value."""

    value: ScalarValue
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    nodes: tuple[Node, ...]
    place: Place


class Entry(NamedTuple):
    """What stands under one key, and where the key itself was written."""

    key: Place
    node: Node


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping.

    `cuts`: it replaced a value that was not a mapping, and so hides everything merged below that value."""

    entries: Mapping[str, Entry]
    place: Place
    cuts: bool = field(default=False, repr=False)


Node: TypeAlias = Leaf | Items | Section


def merge(under: Node, over: Node) -> Node:
    """`over` laid upon `under`: sections merge key by key, anything else is replaced.

    Associative, because a section that replaced a plain value keeps that in `cuts`.
    """
    if not isinstance(over, Section) or over.cuts:
        return over
    if not isinstance(under, Section):
        return replace(over, cuts=True)
    return merge_sections(under, over)


def merge_sections(under: Section, over: Section) -> Section:
    """`merge` for two sections, whose result is a section too."""
    if over.cuts:
        return over
    entries = dict(under.entries)
    for name, entry in over.entries.items():
        below = entries.get(name)
        entries[name] = entry if below is None else Entry(entry.key, merge(below.node, entry.node))
    return Section(entries, over.place, under.cuts)


def plain(node: Node) -> PlainValue:
    """The values alone: lists become tuples, mappings become dicts."""
    match node:
        case Leaf(value):
            return value
        case Items(nodes):
            return tuple(plain(each) for each in nodes)
        case Section(entries):
            return {name: plain(entry.node) for name, entry in entries.items()}


def planted(value: PlainValue, place: Place) -> Node:
    """The opposite of `plain`: a tree whose values are all at `place`."""
    match value:
        case tuple():
            return Items(tuple(planted(each, place) for each in value), place)
        case dict():
            return Section({name: Entry(place, planted(each, place)) for name, each in value.items()}, place)
        case _:
            return Leaf(value, place)


def find(root: Node, trail: Trail) -> Entry | None:
    """What stands at `trail`, with the place of its key (of itself, for a list item), or None."""
    here = Entry(root.place, root)
    for step in trail:
        match here.node:
            case Section(entries) if step in entries:
                here = entries[str(step)]
            case Items(nodes) if isinstance(step, int) and step < len(nodes):
                here = Entry(nodes[step].place, nodes[step])
            case _:
                return None
    return here


def nearest_entry(root: Node, trail: Trail) -> Entry:
    """What stands at `trail`, or at its longest beginning that exists."""
    for length in range(len(trail), 0, -1):
        if (entry := find(root, trail[:length])) is not None:
            return entry
    return Entry(root.place, root)


def trail_text(trail: Trail) -> str:
    """A trail as people write it: `inputs.documents.columns[1]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in trail)
    return text.removeprefix(".")


def trail_of(text: str) -> Trail:
    """The trail of a text such as `inputs.documents.columns[1]`."""
    steps = re.findall(r"\[(\d+)\]|([^.\[\]]+)", text)
    return tuple(int(index) if index else name for index, name in steps)
