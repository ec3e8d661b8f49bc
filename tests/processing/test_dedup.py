"""Run type `dedup`: the first of equal rows is kept, and every other row is accounted for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from treadle.domain.result import Counters
from treadle.errors import BadRowError, ManifestError, MissingExtraError, RunError

DEDUP = """
    run: {type: dedup}
    inputs: {rows: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    dedup: {method: METHOD, columns: [text], ngram: 2}
    outputs:
      rows: {backend: jsonl, path: rows}
      duplicates: {backend: jsonl, path: duplicates}
"""
TEXTS = ["The sea.", "a ship", "the  sea", "The sea.", None, "a ship", None, "…", ""]
KEPT = {
    "exact": [0, 1, 2, 4, 7, 8],
    "normalized": [0, 1, 4, 7],
    "minhash": [0, 1, 4, 6, 7, 8],
}


def body(method: str = "exact", more: str = "") -> str:
    return DEDUP.replace("METHOD", method) + more


def write(workshop: Any, cuts: tuple[int, ...]) -> dict[tuple[str, int], int]:
    """The texts in files; the number of the row at each file and line."""
    places: dict[tuple[str, int], int] = {}
    for shard, (start, end) in enumerate(zip((0, *cuts), (*cuts, len(TEXTS)), strict=True)):
        path = workshop.rows(f"shard-{shard}", [{"id": at, "text": TEXTS[at]} for at in range(start, end)])
        places |= {(str(path), at - start + 1): at for at in range(start, end)}
    return places


@pytest.mark.parametrize("method", sorted(KEPT))
@pytest.mark.parametrize("cuts", [(), (3,), (1, 1, 6)])
def test_the_first_of_equal_rows_is_kept(workshop: Any, method: str, cuts: tuple[int, ...]) -> None:
    """However the rows are cut into files; every row that is dropped names the one that is kept."""
    places = write(workshop, cuts)
    outcome = workshop.run(body(method))
    kept = [row["id"] for row in workshop.read("rows", "jsonl")]
    assert kept == KEPT[method]
    assert outcome.counters == Counters(9, len(kept), filtered=9 - len(kept))
    dropped = workshop.read("duplicates", "jsonl")
    assert sorted([*kept, *(places[row["source"], row["line"]] for row in dropped)]) == list(range(9))
    for row in dropped:
        assert row["group"] == places[row["of_source"], row["of_line"]]
        assert row["group"] in kept
        assert row.get("similarity", 1.0) == 1.0


@pytest.mark.parametrize("method", sorted(KEPT))
def test_files_are_the_same_bytes_on_any_number_of_workers(workshop: Any, method: str) -> None:
    write(workshop, (2, 5))
    here = workshop.run(body(method))
    workers = "    parallelism: {backend: processes, workers: 2, batch_rows: 1}\n"
    there = workshop.run(body(method, workers), out=workshop.root / "there")
    assert there.counters == here.counters
    for name in ("rows", "duplicates"):
        assert there.outputs[name].files == here.outputs[name].files


def test_bad_rows_are_rejected_once_and_are_nobodys_duplicate(workshop: Any) -> None:
    workshop.rows("a", [{"id": 0, "text": "x"}, "torn", {"id": 2, "text": "x"}, "torn"])
    outcome = workshop.run(body("exact", "    errors: {on_bad_row: quarantine}\n"))
    assert outcome.counters == Counters(4, 1, filtered=1, rejected=2)
    assert [each["line"] for each in workshop.quarantined()] == [2, 4]


def test_a_column_that_is_nowhere_is_an_error_or_rejects_the_rows(workshop: Any) -> None:
    workshop.rows("a", [{"id": 0}, {"id": 1}])
    with pytest.raises(RunError, match="expected a column 'text', found the columns id"):
        workshop.run(body())
    outcome = workshop.run(body("exact", "    errors: {on_bad_row: skip}\n"))
    assert outcome.counters == Counters(2, 0, rejected=2)


def test_numbers_of_different_kinds_are_different_rows(workshop: Any) -> None:
    workshop.rows("a", [{"text": 1}, {"text": 1}, {"text": 2}])
    assert workshop.run(body()).counters == Counters(3, 2, filtered=1)


def mixed(workshop: Any) -> None:
    """A unit of text with a torn line, and one whose column holds whole numbers."""
    workshop.rows("a", [{"text": "the sea"}, {"text": "the sea"}, "torn"])
    workshop.rows("b", [{"text": 1}, {"text": None}, {"text": 2}])
    workshop.rows("c", [{"text": "The sea!"}])


@pytest.mark.parametrize("backend", ["inprocess", "processes"])
def test_what_is_no_text_is_a_bad_row_for_minhash(workshop: Any, backend: str) -> None:
    """One unit of another make must not stop the others; its rows have their places like any bad row."""
    mixed(workshop)
    more = f"    errors: {{on_bad_row: quarantine}}\n    parallelism: {{backend: {backend}, batch_rows: 2}}\n"
    outcome = workshop.run(body("minhash", more))
    assert outcome.counters == Counters(7, 2, filtered=2, rejected=3)
    assert workshop.read("rows", "jsonl") == [{"text": "the sea"}, {"text": None}]
    found = [(Path(each["source"]).stem, each["line"], each["kind"]) for each in workshop.quarantined()]
    assert found == [("a", 3, "not-json"), ("b", 1, "wrong-type"), ("b", 3, "wrong-type")]
    assert workshop.quarantined()[1]["reason"] == "text is int, expected a string"
    assert workshop.quarantined()[1]["raw"] == '{"text": 1}'


def test_what_is_no_text_fails_a_run_of_minhash_at_its_line(workshop: Any) -> None:
    """The first in the order of lines, whatever came out of the file sooner."""
    path = workshop.rows("a", [{"text": None}, {"text": 1}, "torn"])
    with pytest.raises(BadRowError) as caught:
        workshop.run(body("minhash"))
    assert (caught.value.source, caught.value.line, caught.value.kind) == (str(path), 2, "wrong-type")
    assert "text is int, expected a string" in str(caught.value)


def test_a_torn_row_fails_a_run_before_rows_after_it_do(workshop: Any) -> None:
    path = workshop.rows("a", [{"text": None}, "torn", {"text": 1}])
    with pytest.raises(BadRowError) as caught:
        workshop.run(body("minhash"))
    assert (caught.value.source, caught.value.line, caught.value.kind) == (str(path), 2, "not-json")


def test_minhash_without_its_extra_says_how_to_install_it(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before anything is read."""
    monkeypatch.delitem(sys.modules, "rensa", raising=False)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if not (Path(each) / "rensa").exists()])
    workshop.rows("a", [{"text": "x"}])
    with pytest.raises(MissingExtraError, match=r"treadle\[dedup\]"):
        workshop.run(body("minhash"))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (body().replace("duplicates:", "doubles:"), "outputs.doubles"),
        (body().replace("inputs: {rows", "inputs: {row"), "inputs.row"),
        (body().replace('*.jsonl"', '*.jsonl", columns: [id]'), "inputs.rows.columns"),
    ],
)
def test_what_is_missing_or_unknown_is_placed(workshop: Any, changed: str, field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        workshop.run(changed)
    assert field in [each.field for each in caught.value.problems]
