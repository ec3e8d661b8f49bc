"""The final manifest as YAML, each value with where it comes from: what a run would really go by.

The text is itself a manifest of the present version: without includes and placeholders, every default written
out, and each param with the value that it has as its default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from treadle.manifest.load import Document
from treadle.manifest.model import Manifest
from treadle.manifest.params import Params
from treadle.manifest.places import Entry, Leaf, Place, PlainValue, Trail, find, trail_text
from treadle.manifest.spelling import PRESENT
from treadle.manifest.yaml_text import write_flow, write_key
from treadle.storage import shown_url

_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_WIDEST = 64


class _Line(NamedTuple):
    text: str
    origin: str


def explain_manifest(document: Document, params: Params, given: Iterable[str], manifest: Manifest) -> str:
    """The text; `given` are the names of the params that the caller gave, the others have their defaults."""
    lines = list(_Explaining(document, params, frozenset(given)).lines(manifest))
    width = min(max(len(line.text) for line in lines), _WIDEST)
    told = (f"{line.text:{width}}  # {line.origin}" if line.origin else line.text for line in lines)
    return "\n".join((*_head(document), *told, ""))


def _head(document: Document) -> Iterator[str]:
    """What has another name today, in a manifest of an older version."""
    spelling = document.spelling
    if spelling.version == PRESENT:
        return
    called = f"version {spelling.version}" if spelling.version > 2 else "a version before 3"
    yield f"# written in {called} of the language; the same in version {PRESENT}:"
    for new, old in spelling.renamed:
        if find(document.tree, new) is not None and new not in (("run",), ("params",)):
            yield f"#   {trail_text(old)} -> {trail_text(new)}"


@dataclass(frozen=True)
class _Explaining:
    document: Document
    params: Params
    given: frozenset[str]

    def lines(self, manifest: Manifest) -> Iterator[_Line]:
        for name, value in manifest.model_dump().items():
            if name == "params":
                yield from self._declarations(manifest)
            elif value is not None:
                yield from self._lines(value, (name,))

    def _lines(self, value: PlainValue, trail: Trail) -> Iterator[_Line]:
        """A mapping is one line a key; a list of lists or mappings one line an item; all else is one line."""
        head = f"{'  ' * (len(trail) - 1)}{write_key(str(trail[-1]))}:"
        if isinstance(value, dict) and value:
            yield _Line(head, "")
            for name, below in value.items():
                yield from self._lines(below, (*trail, name))
        elif isinstance(value, tuple) and any(isinstance(each, (dict, tuple)) for each in value):
            yield _Line(head, "")
            for index, each in enumerate(value):
                item = f"{'  ' * len(trail)}- {write_flow(_escaped(each))}"
                yield _Line(item, self._origin((*trail, index)))
        else:
            yield _Line(f"{head} {write_flow(_escaped(value))}", self._origin(trail))

    def _declarations(self, manifest: Manifest) -> Iterator[_Line]:
        """Each declaration with the value as its default; one whose value no default can be is left out."""
        shown = {name: each for name, each in manifest.params.items() if not self._is_odd(name)}
        if shown:
            yield _Line("params:", "")
        for name, section in shown.items():
            declared = section.model_dump(exclude_none=True) | {"default": self.params.values[name]}
            yield _Line(f"  {write_key(name)}: {write_flow(declared)}", self._param_origin(name))

    def _is_odd(self, name: str) -> bool:
        value = self.params.values[name]
        return isinstance(value, str) and "${" in value

    def _param_origin(self, name: str) -> str:
        entry = find(self.document.tree, ("params", name))
        declared = _place(entry.key) if entry else ""
        return f"given; declared at {declared}" if name in self.given else f"default at {declared}"

    def _origin(self, trail: Trail) -> str:
        entry = self._written(trail)
        if entry is None:
            return "default"
        old = self.document.spelling.old(trail)
        words = [_place(entry.node.place)]
        if old != trail:
            words.append(f"as {trail_text(old)}")
        return "; ".join([*words, *self._inserted(entry)])

    def _written(self, trail: Trail) -> Entry | None:
        """What stands in the files at `trail`, or in the placeholder that a longer trail goes into."""
        for length in range(len(trail), 0, -1):
            entry = find(self.document.tree, trail[:length])
            if entry is not None and (length == len(trail) or _is_placeholder(entry)):
                return entry
        return None

    def _inserted(self, entry: Entry) -> Iterator[str]:
        """The origin of each param in a value."""
        text = entry.node.value if isinstance(entry.node, Leaf) else None
        names = _PLACEHOLDER.findall(text) if isinstance(text, str) else []
        for name in dict.fromkeys(each for each in names if each):
            param = name.removeprefix("params.")
            origin = f" {self._param_origin(param)}" if name.startswith("params.") else " of the run"
            yield f"${{{name}}}{origin}"


def _is_placeholder(entry: Entry) -> bool:
    return isinstance(entry.node, Leaf) and isinstance(entry.node.value, str) and "${" in entry.node.value


def _place(place: Place) -> str:
    chain = "".join(f" <- {each}" for each in place.chain)
    return f"{place.file}:{place.line}{chain}"


def _escaped(value: PlainValue) -> PlainValue:
    """The value with `${` written so that it stays text when it is read again, and without passwords."""
    match value:
        case str():
            return (shown_url(value) if "://" in value else value).replace("${", "$${")
        case tuple():
            return tuple(_escaped(each) for each in value)
        case dict():
            return {name: _escaped(each) for name, each in cast("Mapping[str, PlainValue]", value).items()}
        case _:
            return value
