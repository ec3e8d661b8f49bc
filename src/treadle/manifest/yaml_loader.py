"""YAML text to a value tree, strictly and within bounds.

The tree is built from the parser's events, so that each bound is checked before the memory is spent: an alias
costs what it expands to, not what it takes to write. Nothing but text, numbers, booleans, null, lists
and mappings with text keys can come out; tags, merge keys and duplicate keys are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import yaml

from treadle.manifest.places import Entry, Items, Leaf, Node, Place, Section, Trail
from treadle.manifest.problems import Problems, brief, describe
from treadle.manifest.scalars import read_word

MAX_DEPTH = 50
MAX_VALUES = 50_000
_Loader: type = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


def read_tree(text: str, start: Place, problems: Problems) -> Section | None:
    """The mapping that `text` holds; None when there is none, and `problems` knows why.

    `start` is the first place of the file. Duplicate keys and the like are noted, and reading goes on.
    """
    try:
        root = _TreeBuilder(text, start, problems).document()
    except yaml.MarkedYAMLError as error:
        _note_syntax_error(error, text, start, problems)
        return None
    if isinstance(root, Section):
        return root
    found = "an empty document" if root is None or root == Leaf(None, root.place) else describe(root)
    problems.unreadable(root.place if root else start, (), "a mapping", found)
    return None


class _Anchored(NamedTuple):
    node: Node
    values: int
    height: int


class _TreeBuilder:
    """Recursive descent over parser events. Raises yaml.MarkedYAMLError where reading cannot go on."""

    def __init__(self, text: str, start: Place, problems: Problems) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_Loader)
        self._start = start
        self._problems = problems
        self._anchors: dict[str, _Anchored] = {}
        self._values = 0
        self._deepest = 0

    def document(self) -> Node | None:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), ())
        next(self._events)  # the end of the document
        if not isinstance(after := next(self._events), yaml.StreamEndEvent):
            raise _refusal("a second document", after)
        return root

    def _node(self, event: yaml.Event, trail: Trail) -> Node:
        match event:
            case yaml.AliasEvent():
                return self._alias(event, len(trail))
            case yaml.ScalarEvent() | yaml.CollectionStartEvent():
                return self._written_out(event, trail)
        raise AssertionError(f"the parser gave {event!r} where a value stands")

    def _written_out(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, trail: Trail) -> Node:
        """A value that is not an alias; if it has an anchor, it is kept with the cost of repeating it."""
        values, deepest = self._values, self._deepest
        self._deepest = 0
        self._spend(event, values=1, depth=len(trail))
        if event.tag is not None:
            self._problems.add(
                self._place(event), trail, "a value without a tag", f"the tag {brief(event.tag)}"
            )
        node = self._content(event, trail)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, self._values - values, self._deepest - len(trail))
        self._deepest = max(self._deepest, deepest)
        return node

    def _content(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, trail: Trail) -> Node:
        match event:
            case yaml.ScalarEvent():
                return Leaf(read_word(event.value) if event.implicit[0] else event.value, self._place(event))
            case yaml.SequenceStartEvent():
                return self._items(event, trail)
            case _:
                return self._section(event, trail)

    def _items(self, start: yaml.Event, trail: Trail) -> Items:
        nodes: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            nodes.append(self._node(event, (*trail, len(nodes))))
        return Items(tuple(nodes), self._place(start))

    def _section(self, start: yaml.Event, trail: Trail) -> Section:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            place = self._place(event)
            name = self._key(event, trail)
            node = self._node(next(self._events), (*trail, name or "?"))
            if name in entries:
                found = f"{brief(name)} again (first on line {entries[name].key.line})"
                self._problems.add(place, (*trail, name), "each key once", found)
            elif name is not None:
                entries[name] = Entry(place, node)
        return Section(entries, self._place(start))

    def _key(self, event: yaml.Event, trail: Trail) -> str | None:
        key = self._node(event, (*trail, "?"))
        if _is_merge_key(event):
            self._problems.add(key.place, trail, "a key (for shared parts use include)", "the merge key '<<'")
            return None
        if isinstance(key, Leaf) and isinstance(key.value, str):
            return key.value
        self._problems.add(key.place, trail, "a key that is text (in quotes if need be)", describe(key))
        return None

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        target = self._anchors.get(event.anchor or "")
        if target is None:
            raise _refusal(f"the alias *{event.anchor} without an anchor before it", event)
        self._spend(event, target.values, depth + target.height)
        return target.node

    def _spend(self, event: yaml.Event, values: int, depth: int) -> None:
        self._values += values
        self._deepest = max(self._deepest, depth)
        if self._values > MAX_VALUES:
            raise _refusal(f"more than {MAX_VALUES:,} values, aliases expanded", event)
        if depth > MAX_DEPTH:
            raise _refusal(f"more than {MAX_DEPTH} levels, aliases expanded", event)

    def _place(self, event: yaml.Event) -> Place:
        return _marked_place(event.start_mark, self._start)


def _is_merge_key(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"


def _refusal(what: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"found {what}", problem_mark=cast("yaml.Mark", event.start_mark))


def _marked_place(mark: object, start: Place) -> Place:
    """The place of a mark of either parser; both count from 0, in characters."""
    line, column = getattr(mark, "line", 0), getattr(mark, "column", 0)
    return Place(start.file, line + 1, column + 1, start.chain)


def _note_syntax_error(error: yaml.MarkedYAMLError, text: str, start: Place, problems: Problems) -> None:
    place = _marked_place(error.problem_mark, start)
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if tab := re.match(r" *\t", line):
        problems.unreadable(replace(place, column=tab.end()), (), "spaces for indentation", "a tab")
        return
    what = error.problem or "an error"
    what = what.removeprefix("found ") if what.startswith("found ") else f"an error: {what}"
    begun = f" ({error.context}, line {error.context_mark.line + 1})" if error.context_mark else ""
    problems.unreadable(place, (), "valid YAML", f"{what}{begun}")
