"""A manifest and its includes, merged into one tree.

Includes are merged in their order, and the file's own keys on top of them. A path is relative to the file
that names it and stays inside the folder of the manifest. A file that cannot be read is noted, and the
others are still read.
"""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path
from typing import NamedTuple

from treadle.errors import nearest
from treadle.manifest.places import Entry, Items, Leaf, Node, Place, Section, Trail, merge_sections, trail_of
from treadle.manifest.problems import Problems, brief, describe
from treadle.manifest.source import read_text
from treadle.manifest.yaml_loader import MAX_DEPTH, read_tree

MAX_FILES = 100
_ITEM = "a path, or a mapping of path and at"


def gather(path: str, problems: Problems) -> Section | None:
    """The merged tree of the manifest at `path`; None when its own file holds no mapping."""
    return _Gathering(Path(path), problems).tree(Path(path), Place(path, 1, 1), ())


class _Include(NamedTuple):
    path: str
    at: Trail
    place: Place
    trail: Trail


class _Refusal(NamedTuple):
    expected: str
    found: str
    nearest: str | None = None


class _Gathering:
    """Loads files depth first; `open_files` is the path from the manifest to the file being read."""

    def __init__(self, manifest: Path, problems: Problems) -> None:
        self._folder = _real(manifest.parent)
        self._problems = problems
        self._files = 0
        self._depth = 0

    def tree(self, path: Path, start: Place, open_files: tuple[Path, ...]) -> Section | None:
        self._files += 1
        text = read_text(path, start, self._problems)
        own = None if text is None else read_tree(text, start, self._problems)
        if own is None or "include" not in own.entries:
            return own
        merged = Section({}, own.place)
        for include in _includes(own.entries["include"].node, self._problems):
            merged = merge_sections(merged, self._included(include, path, (*open_files, path)))
        rest = {name: entry for name, entry in own.entries.items() if name != "include"}
        return merge_sections(merged, Section(rest, own.place))

    def _included(self, include: _Include, includer: Path, open_files: tuple[Path, ...]) -> Section:
        nothing = Section({}, include.place)
        path = Path(os.path.normpath(includer.parent / include.path))
        refusal = self._refusal(path, include, open_files)
        if refusal is not None:
            self._problems.unreadable(include.place, include.trail, *refusal)
            return nothing
        chain = (f"{include.place.file}:{include.place.line}", *include.place.chain)
        self._depth += len(include.at)
        tree = self.tree(path, Place(str(path), 1, 1, chain), open_files)
        self._depth -= len(include.at)
        return nothing if tree is None else _under(include, tree)

    def _refusal(self, path: Path, include: _Include, open_files: tuple[Path, ...]) -> _Refusal | None:
        """Why `path` may not be read now. Outside the folder not even its existence is looked up."""
        if "\0" in include.path:
            return _Refusal("a path", brief(include.path))
        target = _real(path)
        if not target.is_relative_to(self._folder):
            return _Refusal(f"a file inside {self._folder}", brief(include.path))
        opened = [_real(each) for each in open_files]
        if target in opened:
            circle = (*open_files[opened.index(target) :], path)
            return _Refusal("includes without a cycle", " -> ".join(map(str, circle)))
        # os.path and glob, not pathlib, whose methods raise on a name that is too long.
        if not os.path.exists(target):  # noqa: PTH110
            guess = nearest(path.name, sorted(_yaml_files(path.parent) - {each.name for each in open_files}))
            return _Refusal("an existing file", brief(include.path), guess)
        if self._depth + len(include.at) > MAX_DEPTH:
            return _Refusal(f"at most {MAX_DEPTH} levels of at", "more")
        if self._files >= MAX_FILES:
            return _Refusal(f"at most {MAX_FILES} files in all", "more")
        return None


def _real(path: Path) -> Path:
    """`path` without links; unlike `Path.resolve`, it survives a link to itself."""
    return Path(os.path.realpath(path))


def _yaml_files(folder: Path) -> set[str]:
    return set(glob("*.y*ml", root_dir=folder))  # noqa: PTH207


def _includes(node: Node, problems: Problems) -> list[_Include]:
    if not isinstance(node, Items):
        problems.unreadable(node.place, ("include",), "a list of files", describe(node))
        return []
    found = (_include(each, ("include", index), problems) for index, each in enumerate(node.nodes))
    return [each for each in found if each is not None]


def _include(node: Node, trail: Trail, problems: Problems) -> _Include | None:
    """One item of the list: `file.yaml`, or `{path: file.yaml, at: some.section}`."""
    if isinstance(node, Leaf) and isinstance(node.value, str):
        return _Include(node.value, (), node.place, trail)
    if not isinstance(node, Section):
        problems.unreadable(node.place, trail, _ITEM, describe(node))
        return None
    for name, entry in node.entries.items():
        if name not in ("path", "at"):
            guess = nearest(name, ("path", "at"))
            problems.add(
                entry.key, (*trail, name), "one of at, path", f"the unknown key {brief(name)}", guess
            )
    path, at = (_text(node, name, trail, problems) for name in ("path", "at"))
    if path is None or at is None:
        return None
    return _Include(path, trail_of(at), node.entries["path"].node.place, (*trail, "path"))


def _text(section: Section, name: str, trail: Trail, problems: Problems) -> str | None:
    entry = section.entries.get(name)
    if entry is not None and isinstance(entry.node, Leaf) and isinstance(entry.node.value, str):
        return entry.node.value
    place = entry.node.place if entry else section.place
    problems.unreadable(place, (*trail, name), "text", describe(entry.node) if entry else "nothing")
    return None


def _under(include: _Include, tree: Section) -> Section:
    """The tree moved below the keys of `at`."""
    for name in reversed(include.at):
        tree = Section({str(name): Entry(include.place, tree)}, include.place)
    return tree
