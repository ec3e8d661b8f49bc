"""Identity: equal values have one fingerprint everywhere, different ones never share it."""

import datetime as dt
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from treadle.artifacts import canonical, fingerprint
from treadle.errors import IdentityError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Layer:
    width: int
    options: Any = None


@dataclass(frozen=True)
class OtherLayer:
    width: int
    options: Any = None


class Model(BaseModel):
    width: int
    tags: list[str] = []


class Pair(NamedTuple):
    a: int
    b: int


DIFFERENT: list[Any] = [
    None, True, False, 0, 1, 2**70, -(2**70), 1.0, 0.1, float("inf"), "", "1", "None", b"", b"1",
    [], [1], [[1]], (), (1,), [1, 2], (1, 2), [2, 1], Pair(1, 2), {}, {"a": 1}, {"a": 2}, {1: 1}, {"1": 1},
    OrderedDict(a=1), set(), {1}, frozenset({1}), {"tuple": [1]}, {"set": [1]}, ["set", [1]],
    Colour.RED, Colour.BLUE, "RED", Level.LOW, Layer(1), Layer(2), OtherLayer(1), Model(width=1),
    Model(width=1, tags=["a"]), Path("a"), "a", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(1),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.time(1), Decimal("1"), Decimal("1.0"), Fraction(1),
    bytearray(b"1"), UUID(int=1), 1j, range(3), range(4), np.int64(1), np.float32(1), np.float64(1),
    np.array([1, 2]), np.array([[1, 2]]), np.array([1, 2], dtype=np.int32), np.array([1.0, 2.0]),
    np.array(["a"], dtype=object), "\ud800",
]  # fmt: skip


def test_no_two_different_values_share_a_fingerprint() -> None:
    seen: dict[str, Any] = {}
    for value in DIFFERENT:
        other = seen.setdefault(fingerprint(value), value)
        assert other is value, f"{value!r} and {other!r}"


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_the_fingerprint_depends_on_the_value_alone(value: Any) -> None:
    """Neither the order in which dicts were filled nor sharing of parts may show."""
    assert fingerprint(value) == fingerprint(reordered(value))
    assert fingerprint([value, value]) == fingerprint([value, reordered(value)])


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    if isinstance(value, list | tuple):
        return type(value)(reordered(each) for each in value)
    return value


@given(PLAIN, PLAIN)
def test_different_plain_values_differ(one: Any, other: Any) -> None:
    if repr(reordered_repr(one)) != repr(reordered_repr(other)):
        assert fingerprint(one) != fingerprint(other)


def reordered_repr(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered_repr(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return type(value)(reordered_repr(each) for each in value)
    return value


SCRIPT = """
from dataclasses import dataclass
from treadle.artifacts import fingerprint

@dataclass(frozen=True)
class Config:
    names: frozenset

print(fingerprint({"s": {"a", "b", "c", ("d", 1)}, "c": Config(frozenset("xyz"))}))
"""


def test_the_fingerprint_is_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    """Sets change their order with the hash seed, from process to process."""
    script = tmp_path / "config.py"
    script.write_text(SCRIPT)
    seen = {
        subprocess.run(
            [sys.executable, *how], capture_output=True, text=True, check=True, cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("0", "1", "2")
        for how in ([str(script)], ["-c", "import config"])
    }  # fmt: skip
    assert len(seen) == 1


def test_arrays_stand_by_content_whatever_their_layout() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert fingerprint(array) == fingerprint(np.asfortranarray(array))
    assert fingerprint(array) == fingerprint(array.astype(">f8"))
    assert fingerprint(array) == fingerprint(np.arange(24.0).reshape(3, 8)[:, :4] * 0 + array)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (
            {"layers": [Layer(1), Layer(2, {"act": len})]},
            r"config\['layers'\]\[1\].options\['act'\]",
        ),
        ({"f": lambda: 1}, r"config\['f'\]"),
        ([object()], r"config\[0\].*builtins.object"),
        ([int], r"config\[0\]"),
        ({"rate": float("nan")}, r"config\['rate'\]: NaN"),
        (Model.model_construct(width=print), "config.width"),
    ],
)
def test_what_has_no_content_is_refused_with_its_path(value: Any, place: str) -> None:
    with pytest.raises(IdentityError, match=place):
        canonical(value, "config")


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = [1]
    value.append(value)
    with pytest.raises(IdentityError, match=r"config\[1\]: the value contains itself"):
        canonical(value, "config")


def test_very_deep_nesting_is_refused_rather_than_crashing() -> None:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(IdentityError, match="deeper than"):
        canonical(value)


def test_paths_are_the_same_on_every_system() -> None:
    assert fingerprint(Path("a/b")) == fingerprint(PurePosixPath("a/b"))
