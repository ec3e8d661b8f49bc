"""What is asked about a row, its seed, and the key by which its answer is known again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.engine import GenerationRequest, Message
from treadle.manifest.model import GenerateSection
from treadle.processing.prompts import Template
from treadle.processing.row_requests import RowRequests, files_identity, plain_rows, request_key, row_seed

ROW = {"key": 7, "text": "a river", "other": "x"}
TEMPLATE = Template((("About ", "text"), (".", None)))


def requests(seed: int = 0, /, **given: object) -> RowRequests:
    section = GenerateSection.model_validate({"model": "m", "prompt": "p", "id_column": "key", **given})
    return RowRequests(section, TEMPLATE, seed)


def test_every_option_of_sampling_reaches_the_request() -> None:
    asked = requests(
        chat=False,
        max_new_tokens=3,
        stop=(";",),
        stop_tokens=(5,),
        temperature=0.5,
        top_k=4,
        top_p=0.9,
        min_p=0.1,
        repetition_penalty=1.5,
    ).request("name", ROW)
    assert asked == GenerationRequest(
        "name",
        "About a river.",
        3,
        (";",),
        (5,),
        temperature=0.5,
        top_k=4,
        top_p=0.9,
        min_p=0.1,
        repetition_penalty=1.5,
        seed=row_seed(0, 7),
    )


def test_a_chat_begins_with_what_the_model_is_told() -> None:
    turns = (Message("system", "be brief"), Message("user", "About a river."))
    assert requests(system="be brief").request("name", ROW).prompt == turns
    assert requests().request("name", ROW).prompt == turns[1:]


def test_a_seed_is_the_same_today_and_tomorrow() -> None:
    """Answers that were drawn can be drawn again: another rule for seeds would be another experiment."""
    assert row_seed(7, "row 1") == 8715454483276127784


@given(st.integers(0, 2**70), st.integers() | st.text(), st.integers() | st.text())
def test_a_seed_is_of_the_id_and_fits_a_request(seed: int, one: int | str, other: int | str) -> None:
    assert 0 <= row_seed(seed, one) < 2**63
    assert (row_seed(seed, one) == row_seed(seed, other)) == (one == other and type(one) is type(other))


@pytest.mark.parametrize(
    ("changed", "same"), [({"other": "y"}, True), ({"text": "b"}, False), ({"key": "7"}, False)]
)
def test_a_key_stands_for_what_is_asked_and_by_whom(changed: dict[str, object], same: bool) -> None:
    """A column that is not asked about may change, and the place of a row, which names its request."""
    one, other = requests().request("one", ROW), requests().request("other", {**ROW, **changed})
    assert (request_key("model", one) == request_key("model", other)) == same
    assert request_key("model", one) != request_key("another", one)


@pytest.mark.parametrize("key", ["system", "max_new_tokens", "stop", "temperature", "top_k", "seed"])
def test_another_way_to_ask_is_another_key(key: str) -> None:
    changed: dict[str, object] = {"system": "x", "max_new_tokens": 2, "stop": ("x",), "temperature": 0.5}
    other = requests(1) if key == "seed" else requests(**{key: changed.get(key, 2)})
    assert request_key("m", other.request("name", ROW)) != request_key("m", requests().request("name", ROW))


def test_the_identity_of_files_changes_with_each_of_them(tmp_path: Path) -> None:
    """A model is a file or a folder; where it lies says nothing about it."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a").write_text("a")
    (folder / "b").write_text("b")
    found = [files_identity(folder)]
    (folder / "b").write_text("longer")
    found.append(files_identity(folder))
    (folder / "b").rename(folder / "c")
    found.append(files_identity(folder))
    assert len({*found}) == 3
    assert files_identity(folder.rename(tmp_path / "moved")) == found[-1]
    assert files_identity(tmp_path / "moved" / "a") != files_identity(tmp_path / "moved" / "c")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, pa.timestamp("ns"), "1970-01-01 00:00:00.000000001"),
        (1, pa.time64("ns"), "00:00:00.000000001"),
        (0, pa.date32(), "1970-01-01"),
        (2**30, pa.date32(), "<value out of range: 1073741824>"),
        (None, pa.timestamp("us", "UTC"), None),
    ],
)
def test_a_time_may_be_finer_or_farther_than_those_of_python(
    value: object, kind: pa.DataType, text: str | None
) -> None:
    """Parquet files have nanoseconds where pandas wrote them: no reason for a whole run to fail."""
    rows = pa.record_batch({"other": [0], "at": pa.array([value], kind), "key": [7]})
    assert plain_rows(rows, ("key", "at")) == [{"key": 7, "at": text}]
