"""Typed params: coercion of given text, bounds, and declarations that contradict themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ManifestError
from treadle.manifest import load_manifest_path, merged_params_from_manifest


def merged(folder: Path, params: str, overlay: dict[str, object]) -> dict[str, object]:
    path = folder / "m.yaml"
    path.write_text(f"params:\n{params}\n")
    return dict(merged_params_from_manifest(load_manifest_path(path), overlay).values)


def refused(folder: Path, params: str, overlay: dict[str, object]) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        merged(folder, params, overlay)
    return [str(each).removeprefix(f"{folder}/") for each in caught.value.problems]


def test_the_overlay_lies_on_the_defaults(tmp_path: Path) -> None:
    """A param that is not given keeps its default, null included."""
    params = "  a: {type: int, default: 1}\n  b: {type: str, default: x}\n  c: {type: int, default: null}"
    assert merged(tmp_path, params, {"a": 2}) == {"a": 2, "b": "x", "c": None}


@pytest.mark.parametrize(
    ("kind", "given_value", "value"),
    [
        ("int", "5", 5),
        ("int", " 5 ", 5),
        ("int", 5, 5),
        ("float", "1e-3", 0.001),
        ("float", "2", 2.0),
        ("float", 2, 2.0),
        ("bool", "true", True),
        ("bool", False, False),
        ("str", "5", "5"),
        ("str", "", ""),
        ("path", "s3://b/x", "s3://b/x"),
        ("path", Path("/data"), "/data"),
        ("list", "a, 2,true", ("a", 2, True)),
        ("list", ["a"], ("a",)),
        ("list", "", ()),
    ],
)
def test_a_given_value_becomes_the_declared_type(
    kind: str, given_value: object, value: object, tmp_path: Path
) -> None:
    """A command line has only text; a caller in Python has values; both must agree."""
    [found] = merged(tmp_path, f"  p: {{type: {kind}}}", {"p": given_value}).values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "given_value", "expected"),
    [
        ("int", "2.5", "a whole number"), ("int", 2.0, "a whole number"), ("int", True, "a whole number"),
        ("int", "x", "a whole number"), ("int", None, "a whole number"), ("float", "inf", "a number"),
        ("float", ".inf", "a number"), ("float", "true", "a number"), ("bool", "yes", "true or false"),
        ("bool", 1, "true or false"), ("str", 5, "text"), ("path", "", "a path"),
        ("list", 5, "a list of single values"), ("list", [[1]], "a list of single values"),
        ("float", "1e999", "a number"),
    ],
)  # fmt: skip
def test_an_ill_typed_value_is_refused(kind: str, given_value: object, expected: str, tmp_path: Path) -> None:
    """Nothing is guessed: a guess here is a wrong experiment later."""
    found = str(given_value).lower() if isinstance(given_value, bool) else repr(given_value)
    found = "null" if given_value is None else found
    complaint = f"m.yaml:2:3: params.p: expected {expected}, found the given value {found}; give another"
    assert refused(tmp_path, f"  p: {{type: {kind}}}", {"p": given_value}) == [complaint]


def test_a_whole_number_beyond_all_floats_is_refused(tmp_path: Path) -> None:
    """Python raises OverflowError here; and a long value is cut in the message."""
    [complaint] = refused(tmp_path, "  p: {type: float}", {"p": 10**400})
    assert (
        complaint
        == f"m.yaml:2:3: params.p: expected a number, found the given value 1{'0' * 79}...; give another"
    )


def test_bounds_and_choices_hold_for_given_values(tmp_path: Path) -> None:
    """What the author of a manifest rules out, no caller can bring in."""
    params = (
        "  low: {type: int, min: 1}\n  high: {type: float, max: 0.5}\n"
        "  mode: {type: str, choices: [fast, exact]}\n  tags: {type: list, choices: [a, b]}"
    )
    assert refused(tmp_path, params, {"low": "0", "high": 1, "mode": "slow", "tags": "a,c"}) == [
        "m.yaml:2:3: params.low: expected at least 1, found the given value '0'; give another",
        "m.yaml:3:3: params.high: expected at most 0.5, found the given value 1; give another",
        "m.yaml:4:3: params.mode: expected one of fast, exact, found the given value 'slow'; give another",
        "m.yaml:5:3: params.tags: expected one of a, b, found the given value 'a,c'; give another",
    ]
    assert merged(tmp_path, params, {"low": 1, "high": 0.5, "mode": "fast", "tags": "b"})["tags"] == ("b",)


def test_an_unknown_param_lists_the_known_and_the_nearest(tmp_path: Path) -> None:
    """A misspelt param that is ignored is a run with the wrong settings."""
    params = "  corpus: {type: path, default: x}\n  min_count: {type: int, default: 1}"
    assert refused(tmp_path, params, {"mincount": 3}) == [
        (
            "m.yaml:1:1: params.mincount: expected a declared param (corpus, min_count), found 'mincount'; "
            "did you mean 'min_count'?"
        )
    ]


def test_a_missing_param_is_placed_at_its_declaration(tmp_path: Path) -> None:
    """That is where its type and its help stand."""
    assert refused(tmp_path, "  corpus: {type: path}", {}) == [
        (
            "m.yaml:2:3: params.corpus: expected a value (path, required), "
            "found none; give one (--param corpus=VALUE), or declare a default"
        )
    ]


@pytest.mark.parametrize(
    ("declaration", "complaint"),
    [
        ("{type: int, default: x}", "p.default: expected a whole number, found 'x'"),
        ("{type: int, default: '5'}", "p.default: expected a whole number, found '5'"),
        ("{type: int, default: 0, min: 1}", "p.default: expected at least 1, found 0"),
        ("{type: str, default: c, choices: [a, b]}", "p.default: expected one of a, b, found 'c'"),
        ("{type: int, choices: [1, x]}", "p.choices[1]: expected a whole number, found 'x'"),
        ("{type: str, min: 1}", "p.min: expected no bound for the type str, found 1"),
        ("{type: int, min: 3, max: 2}", "p.max: expected at least min, 3, found 2"),
        (
            "{type: str, default: '${run.id}'}",
            "p.default: expected a value without placeholders, found '${run.id}'",
        ),
        (
            "{type: integer}",
            "p.type: expected one of str, int, float, bool, path, list, found 'integer'; did you mean 'int'?",
        ),
        ("{default: 1}", "p.type: expected a value (the key is required), found nothing"),
        (
            "{type: int, mn: 1}",
            (
                "p.mn: expected one of choices, default, help, max, min, type, "
                "found the unknown key 'mn'; did you mean 'min'?"
            ),
        ),
        ("{type: str, choices: []}", "p.choices: expected a list of at least 1 item(s), found a list"),
        ("5", "p: expected a mapping, found 5"),
    ],
)
def test_a_declaration_must_make_sense(declaration: str, complaint: str, tmp_path: Path) -> None:
    """A default that its own declaration refuses would fail only for those who do not override it."""
    [found] = refused(tmp_path, f"  p: {declaration}", {"p": "7"})
    assert found.endswith(f" params.{complaint}")


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()))
def test_text_and_value_give_the_same_param(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    """The same run started from a shell and from Python must be the same run."""
    folder = tmp_path_factory.mktemp("params")
    declaration = f"  p: {{type: {type(value).__name__}}}"
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    assert merged(folder, declaration, {"p": spelled}) == merged(folder, declaration, {"p": value})
