"""Strict YAML within bounds: what comes in, and how the rest is refused."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ManifestError
from treadle.manifest import yaml_loader
from treadle.manifest.places import Place, PlainValue, Section, find, plain
from treadle.manifest.problems import Problems
from treadle.manifest.yaml_loader import MAX_DEPTH, MAX_VALUES, read_tree

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.dictionaries(TEXT, inner, max_size=4) | st.lists(inner, max_size=4).map(tuple),
    max_leaves=20,
)


class QuotingDumper(yaml.SafeDumper):
    """PyYAML leaves text such as 1e3 bare, because its own reader takes it for text."""


QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)
QuotingDumper.add_representer(tuple, lambda dumper, items: dumper.represent_list(items))


def read(text: str) -> Section:
    problems = Problems()
    tree = read_tree(text, Place("m.yaml", 1, 1), problems)
    problems.raise_any()
    assert tree is not None
    return tree


def complaints(text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read(text)
    return [str(each) for each in caught.value.problems]


@given(st.dictionaries(TEXT, VALUES, max_size=5), st.booleans())
def test_nested_values_survive_a_round_trip(value: dict[str, PlainValue], flow: bool) -> None:
    """Nothing may be bent on the way in, in either style of YAML."""
    assert (
        plain(read(yaml.dump(value, Dumper=QuotingDumper, default_flow_style=flow, allow_unicode=True)))
        == value
    )


def test_the_parser_in_python_gives_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML comes without libyaml, manifests and their places must not change."""
    text = "a: &x [1, 'é', {b: null}]\nc:\n  - *x\n  - |\n    text\n  - 1e-3\nd: 'no'\ne: no\n"
    quick = read(text)
    monkeypatch.setattr(yaml_loader, "_Loader", yaml.SafeLoader)
    assert read(text) == quick


def test_every_key_and_value_knows_its_place() -> None:
    """Columns count characters, not bytes, so an editor jumps to the right one."""
    tree = read("a:\n  é: [1,\n    x]\n")
    assert find(tree, ("a", "é", 1)) is not None
    places = [find(tree, trail) for trail in [("a",), ("a", "é"), ("a", "é", 1)]]
    assert [(each.key.line, each.key.column) for each in places if each] == [(1, 1), (2, 3), (3, 5)]


def test_an_alias_repeats_its_anchor() -> None:
    """Sharing inside a file is plain YAML and harmless within bounds."""
    assert plain(read("a: &x {b: 1}\nc: [*x, *x]\n")) == {"a": {"b": 1}, "c": ({"b": 1}, {"b": 1})}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2\n", "m.yaml:2:1: a: expected each key once, found 'a' again (first on line 1)"),
        ("a:\n\tb: 1\n", "m.yaml:2:1: expected spaces for indentation, found a tab"),
        ("a: 1\n \tb: 2\n", "m.yaml:2:2: expected spaces for indentation, found a tab"),
        (
            "a: b: c\n",
            "m.yaml:1:5: expected valid YAML, found an error: mapping values are not allowed in this context",
        ),
        (
            "a: 'x\n",
            (
                "m.yaml:2:1: expected valid YAML, "
                "found unexpected end of stream (while scanning a quoted scalar, line 1)"
            ),
        ),
        ("", "m.yaml:1:1: expected a mapping, found an empty document"),
        ("# nothing\n", "m.yaml:1:1: expected a mapping, found an empty document"),
        ("---\n", "m.yaml:2:1: expected a mapping, found an empty document"),
        ("- a\n", "m.yaml:1:1: expected a mapping, found a list"),
        ("hello\n", "m.yaml:1:1: expected a mapping, found 'hello'"),
        ("a: 1\n---\nb: 1\n", "m.yaml:2:1: expected valid YAML, found a second document"),
        ("a: {1: x}\n", "m.yaml:1:5: a: expected a key that is text (in quotes if need be), found 1"),
        ("a: {true: x}\n", "m.yaml:1:5: a: expected a key that is text (in quotes if need be), found true"),
        ("? [a]\n: 1\n", "m.yaml:1:3: expected a key that is text (in quotes if need be), found a list"),
        (
            "a: !!python/name:os.system x\n",
            (
                "m.yaml:1:4: a: expected a value without a tag, "
                "found the tag 'tag:yaml.org,2002:python/name:os.system'"
            ),
        ),
        ("a: !x [1]\n", "m.yaml:1:4: a: expected a value without a tag, found the tag '!x'"),
        ("a: *x\n", "m.yaml:1:4: expected valid YAML, found the alias *x without an anchor before it"),
        ("a: &x [*x]\n", "m.yaml:1:8: expected valid YAML, found the alias *x without an anchor before it"),
        (
            "a: &x {b: 1}\nc: {<<: *x}\n",
            "m.yaml:2:5: c: expected a key (for shared parts use include), found the merge key '<<'",
        ),
    ],
)
def test_what_is_not_strict_yaml_is_refused_at_its_place(text: str, complaint: str) -> None:
    """Each of these is silently accepted, or bent, by common loaders."""
    assert complaints(text) == [complaint]


def test_several_small_faults_are_told_at_once() -> None:
    """Only broken syntax ends the reading of a file."""
    assert len(complaints("a: 1\na: 2\n3: x\nb: !t 1\n")) == 3


def test_billion_laughs_are_refused() -> None:
    """Nine levels of nine aliases are 387 million values from 300 bytes: expanding them would never end."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    [complaint] = complaints("\n".join(lines))
    assert f"found more than {MAX_VALUES:,} values, aliases expanded" in complaint


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_deep_nesting_is_refused(opening: str) -> None:
    """Deep input must not end in a RecursionError."""
    [complaint] = complaints("a: " + opening * (MAX_DEPTH + 1))
    assert f"found more than {MAX_DEPTH} levels" in complaint
    assert "expected valid YAML" in complaints("a: " + opening * 100_000)[0]


def test_depth_that_aliases_add_up_counts_too() -> None:
    """Each anchor here is shallow; the value they make together is 60 levels deep."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60))]
    [complaint] = complaints("\n".join(lines))
    assert f"found more than {MAX_DEPTH} levels" in complaint
