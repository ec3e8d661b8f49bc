"""Placeholders: `${params.name}` and the run's own variables, such as `${run.output}`.

A value that is exactly one placeholder takes the typed value; inside a longer text the value is written out.
`$${` is a literal `${`. Inserted text is never searched again, so a value cannot smuggle in a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from treadle.errors import nearest
from treadle.manifest.params import Params
from treadle.manifest.places import Entry, Items, Leaf, Node, PlainValue, Section, Trail, planted
from treadle.manifest.problems import Problems, brief
from treadle.manifest.scalars import write_word

_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}|\$\{")


@dataclass
class Interpolation:
    """Fills the placeholders of a tree.

    `variables` are named as in the manifest: `run.output`. After `fill`, `unknown` holds the trails of the
    values that could not be filled: noted here, or due to a param or a file whose problem is noted.
    """

    params: Params
    variables: Mapping[str, str]
    problems: Problems
    unknown: set[Trail] = field(default_factory=set)

    def fill(self, tree: Section) -> Section:
        """The tree with every value filled, except the declarations under `params`."""
        entries = {
            name: entry if name == "params" else Entry(entry.key, self._node(entry.node, (name,)))
            for name, entry in tree.entries.items()
        }
        return Section(entries, tree.place)

    def _node(self, node: Node, trail: Trail) -> Node:
        match node:
            case Leaf(str() as text) if "${" in text:
                return self._text(text, node, trail)
            case Leaf():
                return node
            case Items(nodes, place):
                filled = tuple(self._node(each, (*trail, index)) for index, each in enumerate(nodes))
                return Items(filled, place)
            case Section(entries, place):
                return Section(
                    {
                        name: Entry(entry.key, self._node(entry.node, (*trail, name)))
                        for name, entry in entries.items()
                    },
                    place,
                )

    def _text(self, text: str, leaf: Leaf, trail: Trail) -> Node:
        whole = _TOKEN.fullmatch(text)
        if whole and whole["name"] is not None:
            value = self._value(whole["name"], leaf, trail)
            return leaf if value is None else planted(value[0], leaf.place)
        return Leaf(_TOKEN.sub(lambda token: self._written(token, leaf, trail), text), leaf.place)

    def _written(self, token: re.Match[str], leaf: Leaf, trail: Trail) -> str:
        """The text that replaces one placeholder inside a longer text."""
        if token[0] == "$${":
            return "${"
        if token["name"] is None:
            self._refuse(leaf, trail, "'}' after '${' (or '$${' for the two characters)", brief(leaf.value))
            return token[0]
        value = self._value(token["name"], leaf, trail)
        if value is None:
            return token[0]
        if value[0] is None or isinstance(value[0], (tuple, dict)):
            kind = "null" if value[0] is None else "a list"
            self._refuse(
                leaf, trail, f"nothing around {token[0]!r}, whose value is {kind}", brief(leaf.value)
            )
            return token[0]
        return write_word(value[0])

    def _value(self, name: str, leaf: Leaf, trail: Trail) -> tuple[PlainValue] | None:
        """A one-tuple of the value (which may be None), or None when there is no usable value."""
        if name in self.variables:
            return (self.variables[name],)
        kind, _, param = name.partition(".")
        if kind == "params" and param in self.params.values:
            return (self.params.values[param],)
        if kind == "params" and (param in self.params.unset or self.problems.incomplete):
            self.unknown.add(trail)
            return None
        known = [*(f"params.{each}" for each in self.params.names), *sorted(self.variables)]
        expected = f"one of {', '.join(known)}" if known else "no placeholder (none is known)"
        self._refuse(leaf, trail, expected, brief(f"${{{name}}}"), nearest(name, known))
        return None

    def _refuse(self, leaf: Leaf, trail: Trail, expected: str, found: str, guess: str | None = None) -> None:
        self.unknown.add(trail)
        self.problems.add(leaf.place, trail, expected, found, guess)
