"""Placeholders: typed when alone, written out inside text, never read twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import ManifestError
from treadle.manifest.interpolate import Interpolation
from treadle.manifest.params import Params
from treadle.manifest.places import Place, PlainValue, Section, plain, planted
from treadle.manifest.problems import Problems

PARAMS = Params({"n": 5, "rate": 0.5, "flag": True, "none": None, "tags": ("a", 2), "text": "${run.id}"})
VARIABLES = {"run.output": "/out", "run.id": "r1"}
KNOWN = "one of params.flag, params.n, params.none, params.rate, params.tags, params.text, run.id, run.output"


def filled(value: PlainValue) -> PlainValue:
    problems = Problems()
    tree = planted({"x": value}, Place("m.yaml", 2, 4))
    assert isinstance(tree, Section)
    result = plain(Interpolation(PARAMS, VARIABLES, problems).fill(tree))
    problems.raise_any()
    assert isinstance(result, dict)
    return result["x"]


@pytest.mark.parametrize(("name", "value"), PARAMS.values.items())
def test_a_placeholder_alone_keeps_the_type(name: str, value: PlainValue) -> None:
    """`min_count: ${params.n}` must be a number for the model."""
    assert filled(f"${{params.{name}}}") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${run.output}/tokens", "/out/tokens"),
        ("n=${params.n} r=${params.rate} f=${params.flag}", "n=5 r=0.5 f=true"),
        ("$${params.n}", "${params.n}"),
        ("$${", "${"),
        ("$$${params.n}", "$${params.n}"),
        ("cost $5 and {text}", "cost $5 and {text}"),
        ("${params.text}!", "${run.id}!"),
    ],
)
def test_inside_text_a_value_is_written_out(text: str, value: str) -> None:
    """Values put in are not read again: a param must not be able to smuggle a placeholder in."""
    assert filled(text) == value


def test_lists_and_sections_are_filled_throughout() -> None:
    """A placeholder may stand wherever a value stands."""
    assert filled(({"a": "${run.id}"}, "${params.n}")) == ({"a": "r1"}, 5)


@pytest.mark.parametrize(
    ("text", "expected", "found", "nearest"),
    [
        ("${params.nope}/x", KNOWN, "'${params.nope}'", "params.none"),
        ("${run.xyz}", KNOWN, "'${run.xyz}'", "run.id"),
        ("${run.outptu}", KNOWN, "'${run.outptu}'", "run.output"),
        ("${n}", KNOWN, "'${n}'", None),
        ("${}", KNOWN, "'${}'", None),
        ("${run.id", "'}' after '${' (or '$${' for the two characters)", "'${run.id'", None),
        (
            "x ${params.tags}",
            "nothing around '${params.tags}', whose value is a list",
            "'x ${params.tags}'",
            None,
        ),
        (
            "${params.none} x",
            "nothing around '${params.none}', whose value is null",
            "'${params.none} x'",
            None,
        ),
    ],
)
def test_what_cannot_be_filled_is_refused(text: str, expected: str, found: str, nearest: str | None) -> None:
    """An unknown placeholder left standing would become a folder of that name."""
    with pytest.raises(ManifestError) as caught:
        filled(text)
    [problem] = caught.value.problems
    assert (problem.expected, problem.found) == (expected, found)
    assert (problem.file, problem.line, problem.column, problem.field) == ("m.yaml", 2, 4, "x")
    assert problem.nearest == nearest


@given(st.text("${}ab"))
def test_any_text_can_be_written_by_escaping(text: str) -> None:
    """Whatever an author means literally, there is a way to say it."""
    assert filled(text.replace("${", "$${")) == text


def test_declarations_are_left_alone() -> None:
    """The help of a param may speak of placeholders."""
    tree = planted({"params": {"n": {"help": "use ${params.n}"}}}, Place("m.yaml", 1, 1))
    assert isinstance(tree, Section)
    assert Interpolation(PARAMS, VARIABLES, Problems()).fill(tree) == tree
