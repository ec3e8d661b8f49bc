"""Values come back from the record as they went in, types included."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.artifacts import Artifact, decode_value, encode_value
from treadle.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Report:
    rows: int
    parts: tuple["Report", ...] = ()
    half: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "half", self.rows / 2)


class NotPlain(dict[str, int]):
    pass


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.datetimes()
    | st.builds(Path, st.sampled_from(["a", "/b/c"])) | st.builds(Artifact, st.text())
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_values_come_back_equal_and_of_the_same_types(value: Any) -> None:
    back = decode_value(json.loads(json.dumps(encode_value(value))))
    assert back == value
    assert repr(back) == repr(value)


def test_dataclasses_come_back_without_running_their_init_again() -> None:
    value = {"r": Report(4, (Report(1),)), "tuple": ("dict", 1)}
    assert decode_value(encode_value(value)) == value


def test_a_time_with_its_zone_comes_back() -> None:
    value = datetime(2020, 1, 1, tzinfo=UTC)
    assert decode_value(encode_value(value)) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, r"value: a value of type builtins.set"),
        ({"a": [b"x"]}, r"value\['a'\]\[0\]: a value of type builtins.bytes"),
        ({1: 2}, "builtins.dict"),
        (NotPlain(), "NotPlain"),
        (iter(()), "tuple_iterator"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_type_and_place(value: Any, words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        encode_value(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ArtifactError, match="contains itself"):
        encode_value(value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (["no_such_module_x", "Thing", {}], "no_such_module_x.Thing cannot be found"),
        (["json", "loads", {}], "json.loads is no dataclass"),
        (["treadle.artifacts.artifact", "Artifact", {"folder": "x"}], r"has the fields \['path'\] now"),
    ],
)
def test_a_class_that_has_changed_since_is_told(content: Any, words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        decode_value({"dataclass": content})


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(ArtifactError, match="'frob'"):
        decode_value({"frob": 1})


@pytest.mark.parametrize("number", [2**63, -(10**5000), 10**5000 + 1], ids=["word", "minus", "plus"])
def test_integers_of_any_length_are_kept(number: int) -> None:
    """Python refuses to write more than 4,300 digits, which would lose the step that counted so far."""
    assert decode_value(json.loads(json.dumps(encode_value([number])))) == [number]


@pytest.mark.parametrize(
    "tree",
    [{}, {"int": 1}, {"datetime": "x"}, {"tuple": 5}, {"dict": []}, {"dataclass": [1]}, {"a": 1, "b": 2}],
)
def test_a_tree_that_is_no_value_is_an_error_of_the_artifact(tree: Any) -> None:
    with pytest.raises(ArtifactError, match="value: "):
        decode_value(tree)


SCRIPT = """
import sys
from dataclasses import dataclass
from treadle.artifacts import decode_value, encode_value

@dataclass
class Found:
    n: int

if __name__ == "__main__":
    tree = encode_value(Found(3))
    assert tree == {"dataclass": ["some_script", "Found", {"n": 3}]}, tree
    assert type(decode_value(tree)) is Found
"""


def test_a_dataclass_of_a_script_is_kept_under_the_name_it_is_imported_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step has one identity whether its module is run or imported, so its value has one form too."""
    script = tmp_path / "some_script.py"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, script], check=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert decode_value({"dataclass": ["some_script", "Found", {"n": 3}]}).n == 3
    sys.modules.pop("some_script")
