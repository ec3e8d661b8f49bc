"""Values come back from the record as they went in, types included."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
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


@dataclass(frozen=True)
class Model(Artifact):
    weights: Path
    parts: tuple[str, ...] = ()


FOLDER = "/work/1-2-3"


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
    back = decode_value(json.loads(json.dumps(encode_value(value, FOLDER))), FOLDER)
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize("now", ["/store/a/f", "/moved/a/f", "s3://bucket/a/f/attempt", "relative"])
def test_a_path_of_the_working_folder_comes_back_under_the_output(now: str) -> None:
    """Wherever the output is now: the folder is moved when the step is done, and a store may be moved too."""

    def value(folder: str) -> Any:
        model = Model(folder, Path(folder, "w.bin"), (f"{folder}/x", "other"))
        return {
            "all": [folder, f"{folder}/deep/er.txt", Path(folder), Artifact(f"{folder}/a"), model],
            "n": 1,
        }

    tree = json.loads(json.dumps(encode_value(value(FOLDER), FOLDER)))
    assert FOLDER not in json.dumps(tree)
    back = decode_value(tree, now)
    if "://" not in now:  # a Path has no room for the two slashes of a URL
        assert back == value(now)
    assert back["all"][:2] == [now, f"{now}/deep/er.txt"]
    assert back["all"][3] == Artifact(f"{now}/a")


def test_what_only_looks_like_the_working_folder_stays_as_it_is() -> None:
    value = [f"{FOLDER}4/x", f" {FOLDER}", "/work", f"see {FOLDER}/x", Path(f"{FOLDER}4"), {f"{FOLDER}4": 1}]
    assert decode_value(encode_value(value, FOLDER), "/elsewhere") == value


def test_paths_of_the_store_move_with_it() -> None:
    value = [
        f"{FOLDER}/a",
        "/work/other/b",
        Path("/work"),
        "/workshop",
        {Path(f"{FOLDER}/a"): 1, f"{FOLDER}": 2},
    ]
    back = decode_value(json.loads(json.dumps(encode_value(value, FOLDER, "/work"))), "/now/a", "/now")
    assert back == ["/now/a/a", "/now/other/b", Path("/now"), "/workshop", {Path("/now/a/a"): 1, "/now/a": 2}]


@pytest.mark.parametrize("value", [{1: "a", (2, "b"): None}, {None: 1, "a": 2}, {Report(1): {0.5: 1}}, {}])
def test_dicts_with_any_keys_that_can_be_kept_come_back(value: Any) -> None:
    back = decode_value(json.loads(json.dumps(encode_value(value, FOLDER))), FOLDER)
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    "value", [np.float64(0.1), np.float32(0.1), np.int64(3), np.uint8(3), np.bool_(True)]
)
def test_a_number_of_numpy_comes_back_as_the_number_it_is(value: Any) -> None:
    back = decode_value(encode_value([value], FOLDER), FOLDER)[0]
    assert back == value
    assert type(back) in (float, int, bool)


def test_a_path_that_climbs_out_of_the_folder_is_kept_as_it_was() -> None:
    assert decode_value(encode_value(f"{FOLDER}/../x", FOLDER), "/now") == "/now/../x"


def test_dataclasses_come_back_without_running_their_init_again() -> None:
    value = {"r": Report(4, (Report(1),)), "tuple": ("dict", 1)}
    assert decode_value(encode_value(value, FOLDER), FOLDER) == value


def test_a_time_with_its_zone_comes_back() -> None:
    value = datetime(2020, 1, 1, tzinfo=UTC)
    assert decode_value(encode_value(value, FOLDER), FOLDER) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, r"value: a value of type builtins.set"),
        ({"a": [b"x"]}, r"value\['a'\]\[0\]: a value of type builtins.bytes"),
        ({b"x": 2}, r"value key b'x': a value of type builtins.bytes"),
        (np.timedelta64(1), "numpy.timedelta64"),
        (np.longdouble(1), "numpy.longdouble"),
        (NotPlain(), "NotPlain"),
        (iter(()), "tuple_iterator"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_type_and_place(value: Any, words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        encode_value(value, FOLDER)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ArtifactError, match="contains itself"):
        encode_value(value, FOLDER)


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
        decode_value({"dataclass": content}, FOLDER)


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(ArtifactError, match="'frob'"):
        decode_value({"frob": 1}, FOLDER)


@pytest.mark.parametrize("number", [2**63, -(10**5000), 10**5000 + 1], ids=["word", "minus", "plus"])
def test_integers_of_any_length_are_kept(number: int) -> None:
    """Python refuses to write more than 4,300 digits, which would lose the step that counted so far."""
    assert decode_value(json.loads(json.dumps(encode_value([number], FOLDER))), FOLDER) == [number]


@pytest.mark.parametrize(
    "tree",
    [{}, {"int": 1}, {"datetime": "x"}, {"tuple": 5}, {"dict": []}, {"dataclass": [1]}, {"a": 1, "b": 2}],
)
def test_a_tree_that_is_no_value_is_an_error_of_the_artifact(tree: Any) -> None:
    with pytest.raises(ArtifactError, match="value: "):
        decode_value(tree, FOLDER)


SCRIPT = """
import sys
from dataclasses import dataclass
from treadle.artifacts import decode_value, encode_value

@dataclass
class Found:
    n: int

if __name__ == "__main__":
    tree = encode_value(Found(3), "/out")
    assert tree == {"dataclass": ["some_script", "Found", {"n": 3}]}, tree
    assert type(decode_value(tree, "/out")) is Found
"""


def test_a_dataclass_of_a_script_is_kept_under_the_name_it_is_imported_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step has one identity whether its module is run or imported, so its value has one form too."""
    script = tmp_path / "some_script.py"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, script], check=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert decode_value({"dataclass": ["some_script", "Found", {"n": 3}]}, FOLDER).n == 3
    sys.modules.pop("some_script")
