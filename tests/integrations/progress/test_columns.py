"""Rows fit the width they are given, and words stay whole as long as that can be."""

import pytest
from rich.text import Text

from treadle.integrations.progress.columns import aligned, fold

HEAD = ("step", "time", "why")
ROW = ("train-0123456789ab", "4.2 s", "it needs a step that has to run: words-0123456789ab")


def test_rows_that_fit_are_aligned_and_do_not_end_in_spaces() -> None:
    lines = aligned([HEAD, ROW, ("a", "", "")], (1,), 100).plain.splitlines()
    assert lines == [
        "step                 time  why",
        "train-0123456789ab  4.2 s  it needs a step that has to run: words-0123456789ab",
        "a",
    ]


@pytest.mark.parametrize("width", [80, 60, 48])
def test_a_narrow_table_breaks_no_word(width: int) -> None:
    """An id that is broken cannot be found, nor pasted."""
    lines = aligned([HEAD, ROW], (1,), width).plain.splitlines()
    assert all(len(line) <= width for line in lines)
    words = " ".join(lines).split()
    assert {"train-0123456789ab", "words-0123456789ab"} <= set(words)


def test_ids_stay_whole_before_anything_else() -> None:
    row = ("train-0123456789ab", "seed=1, rate=0.3", "2026-11-30 00:32")
    assert aligned([row], (), 48).plain.splitlines() == [
        "train-0123456789ab  seed=1,     2026-11-30 00:32",
        "                    rate=0.3",
    ]


@pytest.mark.parametrize("width", [40, 20])
def test_what_cannot_stay_whole_is_all_there(width: int) -> None:
    lines = aligned([HEAD, ROW], (), width).plain.splitlines()
    assert sum(len(line.replace(" ", "")) for line in lines) == sum(
        len(cell.replace(" ", "")) for row in (HEAD, ROW) for cell in row
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("run ../exp.py now", ["run", "../exp.py", "now"]),
        ("/data/store/words", ["/data/", "store/", "words"]),
        ("0123456789abcdef", ["0123456789", "abcdef"]),
    ],
)
def test_folding(text: str, lines: list[str]) -> None:
    assert fold(text, 10) == lines


def test_a_folded_text_keeps_its_colours() -> None:
    first, second = fold(Text("train-0123").append(" (rate=1)", "dim"), 11)
    assert isinstance(second, Text)
    assert (str(first), str(second)) == ("train-0123", "(rate=1)")
    assert [span.style for span in second.spans] == ["dim"]
