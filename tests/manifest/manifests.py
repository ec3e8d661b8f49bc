"""Manifests for tests that make them up: valid ones of the whole model, and ways to spoil their text."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal

import pydantic
from hypothesis import strategies as st

from tests.manifest.names import RUN_TYPES
from treadle.manifest.model import Manifest, ParamSection, StrictSection, TransformSection
from treadle.manifest.yaml_text import write_flow

# What YAML may hold, and more often what is special in it.
SPECIAL = ("${params.n}", "$${", "${", "null", "~", "no", "0x1f", "007", "1e3", "<<", "- a", "a: b", "#", "")
texts = st.one_of(st.text(st.characters(codec="utf-8"), max_size=12), st.sampled_from(SPECIAL)).map(
    lambda text: text.replace("${", "$ {")
)
words = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
scalars = st.one_of(
    texts, st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.dictionaries(words, inner, max_size=3)
    ),
    max_leaves=6,
)
# Of each type of param, values that a default may have.
DEFAULTS: dict[str, st.SearchStrategy[object]] = {
    "str": texts,
    "path": words,
    "int": st.integers(),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "list": st.lists(st.one_of(words, st.integers()), max_size=3).map(tuple),
}


def _of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation of the model, as a manifest would hold them."""
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _of(members[0])
    if origin is Literal:
        return st.sampled_from(members)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([_of(each) for each in members])
    if origin is tuple:
        return st.lists(_of(members[0]), min_size=1, max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(words, _of(members[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, StrictSection):
        return sections(kind)
    return _PLAIN[kind]


# Within the bounds of every field: a fraction of 1 and a count of 1 are allowed everywhere.
_PLAIN: dict[object, st.SearchStrategy[Any]] = {
    int: st.integers(1, 10**6),
    float: st.one_of(st.floats(1e-9, 1), st.just(1)),
    bool: st.booleans(),
    str: texts.filter(bool),
    types.NoneType: st.none(),
    Any: values,
}


@st.composite
def sections(draw: st.DrawFn, kind: type[StrictSection]) -> dict[str, Any]:
    """A section with its required keys and some of the others."""
    if kind is ParamSection:
        of_type = draw(st.sampled_from(sorted(DEFAULTS)))
        return {"type": of_type, "default": draw(DEFAULTS[of_type])}
    made = {}
    for name, field in kind.model_fields.items():
        if field.is_required() or draw(st.booleans()):
            made[name] = draw(_field(field))
    if kind is TransformSection:
        made |= draw(st.dictionaries(words.filter(lambda name: name != "name"), values, max_size=3))
    return made


def _field(field: pydantic.fields.FieldInfo) -> st.SearchStrategy[Any]:
    return _of(field.annotation)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """A valid manifest, of any run type."""
    made: dict[str, Any] = draw(sections(Manifest))
    made["run"] = {"type": draw(st.sampled_from(RUN_TYPES))}
    return made


def as_yaml(manifest: dict[str, Any], names: list[str]) -> str:
    """The manifest as text, its keys in the order of `names`."""
    return "".join(f"{name}: {write_flow(manifest[name])}\n" for name in names)


# What is put into a text, or in the place of a part of it.
SCRAPS = st.one_of(
    texts,
    st.sampled_from(
        [
            *SPECIAL,
            *(
                "&a ",
                "*a ",
                "!!python/object:os.system ",
                "!t ",
                "\t",
                "\n",
                "\n\n---\n",
                "...",
                "{",
                "}",
                "[",
                "]",
            ),
            *(
                ": ",
                ", ",
                "'",
                '"',
                "|\n",
                ">",
                "? ",
                "%YAML 1.1\n",
                "\x00",
                "\ud7ff",
                "\u2028",
                "\x85",
                "😀",
            ),
            *("include: [m.yaml]\n", "include: [part.yaml, {path: part.yaml, at: a.b}]\n", "params: {}\n"),
            *("drtml_version: 3\n", "execution: {mode: x}\n", "runner: a.b\n", "params_defaults: {n: [1]}\n"),
        ]
    ),
)


@st.composite
def spoilt(draw: st.DrawFn, text: str) -> str:
    """The text after some changes that know nothing of YAML."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.sampled_from([start, min(start + draw(st.integers(0, 20)), len(text))]))
        text = text[:start] + draw(SCRAPS) + text[end:]
    return text
