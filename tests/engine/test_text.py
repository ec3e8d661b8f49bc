"""Text that grows token by token equals the text decoded at once, whatever the cuts."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from treadle.engine.text import GrowingText


def decode(ids: Sequence[int]) -> str:
    """A token is a byte, as the worst byte-level vocabulary has it."""
    return bytes(ids).decode(errors="replace")


def shown(text: GrowingText, tokens: Sequence[int]) -> list[str]:
    """The parts as a streaming caller gets them."""
    parts = []
    for token in tokens:
        text.add(token)
        parts.append(text.take())
        if text.stopped:
            break
    text.finish()
    return [*parts, text.take_rest()]


@given(st.text(max_size=30))
def test_parts_make_up_the_whole(whole: str) -> None:
    """A character of four bytes comes as one, not as four damaged ones."""
    text = GrowingText(decode)
    assert "".join(shown(text, whole.encode())) == text.text == whole


@given(st.lists(st.integers(0, 255), max_size=30))
def test_bytes_that_are_no_text_are_marked_as_when_decoded_at_once(tokens: list[int]) -> None:
    """A model may sample any bytes; the text never hides or repeats a part."""
    text = GrowingText(decode)
    assert "".join(shown(text, tokens)) == text.text
    assert text.text.replace("\ufffd", "") == decode(tokens).replace("\ufffd", "")


@given(st.text("abc", max_size=20), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_the_text_ends_before_the_first_stop(whole: str, stops: list[str]) -> None:
    """The stop that is complete first ends it; nothing of that is ever shown."""
    text = GrowingText(decode, stops)
    parts = shown(text, whole.encode())
    ends = [whole.find(stop) + len(stop) for stop in stops if stop in whole]
    expected = whole
    if ends:
        upto = whole[: min(ends)]
        expected = upto[: min(upto.find(stop) for stop in stops if stop in upto)]
    assert text.stopped == bool(ends)
    assert "".join(parts) == text.text == expected


def test_what_may_become_a_stop_is_held_back() -> None:
    """A reader who saw half of a stop string could not unsee it."""
    text = GrowingText(decode, ["END"])
    assert shown(text, b"an ENEND") == ["a", "n", " ", "", "", "EN", "", "", ""]
    text = GrowingText(decode, ["END"])
    assert shown(text, b"an EN") == ["a", "n", " ", "", "", "EN"]


@given(st.text(max_size=20), st.text(max_size=10))
def test_what_stands_before_a_text_is_no_part_of_it(before: str, whole: str) -> None:
    """However much of it the decoder is shown, and wherever that begins."""
    text = GrowingText(decode, after=before.encode())
    assert "".join(shown(text, whole.encode())) == text.text == whole


def test_half_a_character_before_a_text_does_not_spoil_it() -> None:
    """A prompt of token ids may begin, or end, anywhere."""
    text = GrowingText(decode, after=[0x9F, 0x8E, 0x89])
    assert shown(text, b"ok") == ["o", "k", ""]
    text = GrowingText(decode, after=[0xC3])
    assert "".join(shown(text, b"\xa9ok")) == "\ufffdok"
