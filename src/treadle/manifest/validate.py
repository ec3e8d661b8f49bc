"""From a value tree to a pydantic model, with each complaint said in plain words at its place."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from treadle.errors import nearest
from treadle.manifest.model import StrictSection
from treadle.manifest.places import Entry, Leaf, Section, Trail, find, nearest_entry, plain
from treadle.manifest.problems import Problems, brief, describe, listing

M = typing.TypeVar("M", bound=StrictSection)

_EXPECTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "greater_than": "more than {gt:.15g}",
    "greater_than_equal": "at least {ge:.15g}",
    "less_than": "less than {lt:.15g}",
    "less_than_equal": "at most {le:.15g}",
    "string_too_short": "text of at least {min_length} character(s)",
    "too_short": "a list of at least {min_length} item(s)",
}


def validate(
    kind: type[M], tree: Section, trail: Trail, problems: Problems, ignore: Iterable[Trail] = ()
) -> M | None:
    """The part of `tree` at `trail` as a `kind`; None after noting all that is wrong with it.

    Problems at or below a trail of `ignore` are left out: they are known already.
    """
    entry = find(tree, trail)
    try:
        return kind.model_validate(plain(entry.node) if entry else {})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _note(kind, tree, trail, detail, problems, tuple(ignore))
        return None


def note_unknown_formats(tree: Section, formats: Sequence[str], problems: Problems) -> None:
    """Note each `backend` of an input or output that is none of `formats`; placeholders are left alone."""
    for kind in ("inputs", "outputs"):
        section = find(tree, (kind,))
        names = section.node.entries if section and isinstance(section.node, Section) else {}
        for name in names:
            trail = (kind, name, "backend")
            match find(tree, trail):
                case Entry(_, Leaf(str() as backend, place)) if backend and "${" not in backend:
                    if backend not in formats:
                        guess = nearest(backend, formats)
                        problems.add(place, trail, listing(formats), brief(backend), guess)
                case _:
                    pass


def _note(
    kind: object,
    tree: Section,
    base: Trail,
    detail: ErrorDetails,
    problems: Problems,
    ignore: tuple[Trail, ...],
) -> None:
    trail = (*base, *detail["loc"])
    if any(trail[: len(each)] == each for each in ignore):
        return
    entry = nearest_entry(tree, trail)
    name = str(trail[-1]) if trail else ""
    match detail["type"]:
        case "missing":
            problems.add_absent(entry.key, trail, "a value (the key is required)", "nothing")
        case "extra_forbidden":
            known = sorted(_written_keys(kind, detail["loc"][:-1], base, problems))
            guess = nearest(name, known)
            problems.add(entry.key, trail, listing(known), f"the unknown key {brief(name)}", guess)
        case other:
            expected, words = _expectation(other, detail)
            written = str(entry.node.value) if isinstance(entry.node, Leaf) else ""
            problems.add(
                entry.node.place, trail, expected, describe(entry.node), nearest(written.lower(), words)
            )


def _expectation(error_type: str, detail: ErrorDetails) -> tuple[str, tuple[str, ...]]:
    """What was expected, and the words among which the nearest one is looked for."""
    context = detail.get("ctx", {})
    if error_type == "literal_error":
        words = tuple(re.findall(r"'([^']*)'", context["expected"]))
        return (listing(words), words) if words else (str(context["expected"]), ())
    if error_type in _EXPECTED:
        words = ("true", "false") if error_type == "bool_type" else ()
        return _EXPECTED[error_type].format(**context), words
    return detail["msg"], ()


def _known_keys(kind: object, trail: Iterable[str | int]) -> tuple[str, ...]:
    """The keys a mapping at `trail` may have."""
    for step in trail:
        kind = _step_into(kind, step)
    model = _model_of(kind)
    return () if model is None else (*model.model_fields, *model.taken_before)


def _written_keys(kind: object, steps: Trail, base: Trail, problems: Problems) -> set[str]:
    """The same, as the version of this manifest spells them."""
    return {str(problems.spelling.old((*base, *steps, key))[-1]) for key in _known_keys(kind, steps)}


def _step_into(kind: object, step: str | int) -> object:
    model = _model_of(kind)
    if model is not None:
        return model.model_fields[str(step)].annotation
    return typing.get_args(kind)[-1]


def _model_of(kind: object) -> type[StrictSection] | None:
    """The model that `kind` is, or that it is next to None."""
    members = typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)
    models = [each for each in members if isinstance(each, type) and issubclass(each, StrictSection)]
    return models[0] if models else None
