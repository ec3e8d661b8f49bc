import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.domain.text import STOPWORDS, split_passages, strip_stage_directions, tokenize
from treadle.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Nation's debt, don\u2019t forget!", ["the", "nation", "debt", "don't", "forget"]),
        ("U.S. Government and the U.S.Army", ["u.s", "government", "and", "the", "u.s", "army"]),
        ("$1,000,000.50 in 1842.", ["1,000,000.50", "in", "1842"]),
        ("co-operation_now", ["co", "operation", "now"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("'tis the boss's 's", ["tis", "the", "boss"]),
        (" \n", []),
    ],
)
def test_words_are_found(text: str, tokens: list[str]) -> None:
    assert tokenize(text)[: len(tokens)] == tokens


def test_options_are_obeyed() -> None:
    assert tokenize("Fellow Citizens", lowercase=False) == ["Fellow", "Citizens"]
    assert tokenize("cafe\u0301") == tokenize("caf\u00e9") == ["caf\u00e9"]
    assert tokenize("caf\u00e9", normalize="NFD") == ["cafe\u0301"]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_tokens_are_normal_and_tokenise_to_themselves(text: str) -> None:
    """Partitions written by one run are read by the next: a second tokenisation must not move anything."""
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens
    assert all(unicodedata.is_normalized("NFC", token) for token in tokens)
    assert [token.lower() for token in tokens] == tokens


@given(st.text(alphabet="abcXYZ .'\u2019s19,é\u0301İß", max_size=60))
def test_the_awkward_letters_too(text: str) -> None:
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens
    assert not any(token.endswith("'s") or "\u2019" in token for token in tokens)


def test_tokenising_is_fast() -> None:
    """1.8 M words are to take a few seconds; this is 200,000 in one, on a slow day."""
    text = "The condition of our country's finances, on the 30th of June, 1842, was sound. " * 14_000
    start = time.process_time()
    assert len(tokenize(text)) == 14 * 14_000
    assert time.process_time() - start < 1.0


def test_stopwords_are_what_tokenise_gives() -> None:
    assert all(tokenize(word) == [word] for word in STOPWORDS)
    assert {"the", "don't", "u.s"} <= STOPWORDS
    assert not {"war", "gold", "peace"} & STOPWORDS


def test_stage_directions_go_and_other_brackets_stay() -> None:
    text = "Thank you. (Applause.) Thank—(applause)—you [Laughter] in Texas (Illinois)."
    assert tokenize(strip_stage_directions(text)) == [
        "thank",
        "you",
        "thank",
        "you",
        "in",
        "texas",
        "illinois",
    ]


sentences = st.lists(
    st.integers(1, 30).map(lambda n: "Word" + " word" * (n - 1) + "."), min_size=0, max_size=40
)
separators = st.sampled_from([" ", "\n", "\n\n", " \n \n "])


@given(sentences, separators, st.integers(1, 50))
def test_passages_are_slices_of_whole_sentences_that_lose_nothing(
    parts: list[str], separator: str, words: int
) -> None:
    text = separator.join(parts)
    passages = split_passages(text, words=words)
    assert " ".join(passages).split() == text.split()
    assert all(passage in text and passage.endswith(".") for passage in passages)
    assert all(2 * len(passage.split()) >= words for passage in passages) or len(passages) == 1


@given(sentences, st.integers(1, 50))
def test_a_passage_stops_where_it_is_nearest_to_the_wanted_length(parts: list[str], words: int) -> None:
    longest = max((len(part.split()) for part in parts), default=0)
    passages = split_passages(" ".join(parts), words=words)
    # Half a sentence too long, or less than half full when one came; the last may have got a short rest.
    limit = max(words + longest / 2, words / 2 + longest)
    assert all(len(passage.split()) <= limit for passage in passages[:-1])


def test_paragraphs_and_abbreviations_bound_passages() -> None:
    first, second = "One two three four. Five six.", "Seven eight nine ten."
    assert split_passages(f"{first}\n\n{second}", words=8) == [first, second]
    text = "Mr. Marcy met Gen. Z. Taylor at St. Louis. He spoke."
    assert split_passages(text, words=2) == ["Mr. Marcy met Gen. Z. Taylor at St. Louis.", "He spoke."]
    assert split_passages('He said "No!" Then he left.', words=1) == ['He said "No!"', "Then he left."]


def test_a_passage_needs_a_length() -> None:
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        split_passages("a", words=0)
