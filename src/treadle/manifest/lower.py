"""Older versions of the language, lowered to the present one before anything looks at their values.

    version 3                              version 4
    execution: {pattern, entry}            run: {type, entry}
    params_defaults: {name: value}         params: {name: {type, default}}, the type being that of the value

    legacy: version 1, 2 or none           version 4
    execution: {mode}                      run: {type}
    runner: package.module.function        run: {type: custom, entry}
    params_defaults                        as above

All other sections are the same. Lowering moves nodes of the placed tree, so whatever is wrong with a value is
still said at the file, line and column where it stands, and under its old name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from treadle.errors import nearest
from treadle.manifest.places import Entry, Items, Leaf, Node, ScalarValue, Section, Trail, find
from treadle.manifest.problems import Problems, describe, listing
from treadle.manifest.spelling import PRESENT, Spelling

KNOWN_VERSIONS = (1, 2, 3, PRESENT)
LEGACY = 2

_OLD_KEYS = ("execution", "params_defaults", "runner")
_NEW_KEYS: Mapping[str, str] = {"run": "execution", "params": "params_defaults"}
_PARTS: Mapping[int, tuple[str, ...]] = {3: ("pattern", "entry"), LEGACY: ("mode",)}
_TYPE_NAMES: Mapping[str, str] = {"reduce_merge": "reduce", "partition_loop": "partition"}


def lower(tree: Section, problems: Problems) -> tuple[Section, Spelling] | None:
    """The tree in the present language, and how it was written; None for a version that is not known."""
    version = _version_of(tree, problems)
    if version is None:
        return None
    if version == PRESENT:
        return tree, Spelling()
    spelling = _spelling(version, tree)
    return _Lowering(tree, version, problems).tree(), spelling


def _version_of(tree: Section, problems: Problems) -> int | None:
    entry = find(tree, ("drtml_version",))
    if entry is None:
        # Without any old key it is a manifest of today that forgot its version.
        return LEGACY if any(key in tree.entries for key in _OLD_KEYS) else PRESENT
    value = entry.node.value if isinstance(entry.node, Leaf) else None
    # The type is asked for because 4.0 == 4 and true == 1.
    if type(value) is int and value in KNOWN_VERSIONS:
        return max(value, LEGACY)
    expected = f"a known version of the language ({', '.join(map(str, KNOWN_VERSIONS))})"
    problems.add(entry.node.place, ("drtml_version",), expected, describe(entry.node))
    return None


def _spelling(version: int, tree: Section) -> Spelling:
    section = find(tree, ("params_defaults",))
    names = section.node.entries if section and isinstance(section.node, Section) else {}
    first = "pattern" if version > LEGACY else "mode"
    entry: Trail = ("execution", "entry") if version > LEGACY else ("runner",)
    renamed: list[tuple[Trail, Trail]] = [
        (("run",), ("execution",)),
        (("run", "type"), ("execution", first)),
        (("run", "entry"), entry),
        (("params",), ("params_defaults",)),
        *((("params", name, "default"), ("params_defaults", name)) for name in names),
    ]
    return Spelling(version, tuple(renamed))


class _Lowering:
    """One old tree on its way; what does not fit its own version is noted."""

    def __init__(self, tree: Section, version: int, problems: Problems) -> None:
        self._tree = tree
        self._version = version
        self._problems = problems

    def tree(self) -> Section:
        dropped = (*_OLD_KEYS, *_NEW_KEYS, "drtml_version")
        if self._version > LEGACY:
            dropped = tuple(key for key in dropped if key != "runner")  # unknown there, and said to be
        kept = {name: entry for name, entry in self._tree.entries.items() if name not in dropped}
        self._refuse_new_keys()
        params = self._params()
        kept |= {"drtml_version": self._present(), "run": self._run()}
        return Section(kept | ({} if params is None else {"params": params}), self._tree.place)

    def _present(self) -> Entry:
        written = self._tree.entries.get("drtml_version")
        key = written.key if written else self._tree.place
        return Entry(key, Leaf(PRESENT, written.node.place if written else self._tree.place))

    def _refuse_new_keys(self) -> None:
        for new, old in _NEW_KEYS.items():
            if new in self._tree.entries:
                expected = f"{old} (the key {new} is of version {PRESENT}, and this is {self._called()})"
                self._problems.add(self._tree.entries[new].key, (new,), expected, f"the unknown key {new!r}")

    def _called(self) -> str:
        return f"version {self._version}" if self._version > LEGACY else "older than version 3"

    def _run(self) -> Entry:
        """`run` made of `execution` and, in legacy files, of `runner`."""
        execution = self._tree.entries.get("execution")
        runner = self._tree.entries.get("runner") if self._version == LEGACY else None
        parts = self._parts(execution)
        if runner is not None:
            parts["entry"] = runner
        around = execution or runner or Entry(self._tree.place, Section({}, self._tree.place))
        if not parts and not self._misshapen(execution):
            self._problems.add_absent(around.key, ("execution",), self._wanted(), "nothing")
        named = next((parts[key] for key in ("pattern", "mode") if key in parts), None)
        entries = {"type": _present_name(named) if named else Entry(around.key, Leaf("custom", around.key))}
        if "entry" in parts:
            entries["entry"] = parts["entry"]
        return Entry(around.key, Section(entries, around.node.place))

    def _wanted(self) -> str:
        return "pattern or entry" if self._version > LEGACY else "execution.mode or runner"

    def _misshapen(self, execution: Entry | None) -> bool:
        return execution is not None and not isinstance(execution.node, Section)

    def _parts(self, execution: Entry | None) -> dict[str, Entry]:
        """What stands in `execution`; the rest is noted."""
        if execution is None:
            return {}
        if not isinstance(execution.node, Section):
            self._problems.add(execution.node.place, ("execution",), "a mapping", describe(execution.node))
            return {}
        known = _PARTS[self._version]
        for name, entry in execution.node.entries.items():
            if name not in known:
                guess = nearest(name, known)
                found = f"the unknown key {name!r}"
                self._problems.add(entry.key, ("execution", name), listing(known), found, guess)
        return {name: entry for name, entry in execution.node.entries.items() if name in known}

    def _params(self) -> Entry | None:
        """Declarations made of the defaults; None when there are no defaults."""
        defaults = self._tree.entries.get("params_defaults")
        if defaults is None:
            return None
        if not isinstance(defaults.node, Section):
            place = defaults.node.place
            self._problems.add(place, ("params_defaults",), "a mapping", describe(defaults.node))
            return None
        declared = {name: self._declared(name, entry) for name, entry in defaults.node.entries.items()}
        found = {name: entry for name, entry in declared.items() if entry is not None}
        return Entry(defaults.key, Section(found, defaults.node.place))

    def _declared(self, name: str, entry: Entry) -> Entry | None:
        kind = _type_of(entry.node)
        if kind is None:
            trail = ("params_defaults", name)
            self._problems.add(
                entry.node.place, trail, "a single value or a list of them", describe(entry.node)
            )
            return None
        place = entry.node.place
        declaration = {"type": Entry(place, Leaf(kind, place)), "default": Entry(entry.key, entry.node)}
        return Entry(entry.key, Section(declaration, place))


def _present_name(written: Entry) -> Entry:
    """The run type under its present name."""
    match written.node:
        case Leaf(str() as name) if name in _TYPE_NAMES:
            return Entry(written.key, replace(written.node, value=_TYPE_NAMES[name]))
    return written


def _type_of(node: Node) -> str | None:
    """The type that a default has; text for null, which says nothing about it."""
    if isinstance(node, Items):
        return "list"
    if not isinstance(node, Leaf):
        return None
    return _scalar_type(node.value)


def _scalar_type(value: ScalarValue) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float")):  # a bool is an int, so it is first
        if isinstance(value, kind):
            return name
    return "str"
