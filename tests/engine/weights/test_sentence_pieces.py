"""SentencePiece vocabularies in GGUF files against the library that trains them."""

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.folders import write_language_model
from tests.engine.sentence_words import metadata, trained
from treadle.engine.engine import Engine
from treadle.engine.requests import GenerationRequest
from treadle.engine.text import GrowingText
from treadle.engine.tokenizer import Tokenizer, load_tokenizer
from treadle.engine.weights import open_checkpoint, open_gguf
from treadle.errors import ArtifactError, UnknownNameError

WriteToy = Callable[..., Path]

TEXTS = (
    "",
    " ",
    "the engine",
    "  the   engine  ",
    "\n\n\tthe\r\n engine ",
    "In 1776, 13 colonies; 3.14159",
    "naïve café — “quotes” … ½",
    "日本語 русский العربية हिन्दी",
    "👩‍👩‍👧 🎉 e\u0301",
    "<0x0A> the\x00\x01\x7f\u200b\ufeff",
    "a" * 300 + "  trailing   ",
)
# "▁" is how words write a space, so it comes back as one, from the library as well.
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"), max_size=40)
words_and_more = st.lists(
    st.sampled_from([*"abest \n.", "the", "in", "  ", "ü", "北", "🎉", "<s", "0"]), max_size=30
)
texts = any_text | words_and_more.map("".join)


class Case(NamedTuple):
    """One vocabulary, read from a file, and as its library has it."""

    ours: Tokenizer
    theirs: Any
    path: Path


@pytest.fixture(scope="module", params=[(True, True), (True, False), (False, True)])
def case(request: pytest.FixtureRequest, write_toy: WriteToy) -> Case:
    """With and without words for single bytes; with and without a space before each text."""
    fallback, prefixed = request.param
    processor = trained(byte_fallback=fallback, prefixed=prefixed)
    return written(write_toy, processor, add_space_prefix=prefixed)


@pytest.fixture(scope="module")
def llama2(write_toy: WriteToy) -> Case:
    """As Llama 2, TinyLlama and Mistral have it."""
    return written(write_toy, trained())


def written(write_toy: WriteToy, processor: Any, **changes: Any) -> Case:
    path = write_toy(words=metadata(processor) | changes)
    return Case(load_tokenizer(open_gguf(path)), processor, path)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_equal_the_library_that_trained_it(case: Case, text: str) -> None:
    """Bytes for characters without a word, or one unknown word for several; spaces as they stand."""
    assert case.ours.encode(text) == case.theirs.encode(text)


@settings(max_examples=200, deadline=None)
@given(text=texts)
def test_any_text_has_the_ids_of_the_library(case: Case, text: str) -> None:
    """Whatever the script, and whichever neighbours make a word first."""
    assert case.ours.encode(text) == case.theirs.encode(text)


@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_every_text_comes_back_as_it_was(llama2: Case, text: str) -> None:
    """The space before it is not the text's."""
    ids = llama2.ours.encode(text)
    assert llama2.ours.decode(ids) == llama2.theirs.decode(ids) == text


@settings(max_examples=100, deadline=None)
@given(text=texts, cut=st.integers(0, 40))
def test_what_grows_behind_a_prompt_makes_up_the_whole(llama2: Case, text: str, cut: int) -> None:
    """Token by token, the space of the first word and characters of several bytes whole."""
    ids = llama2.ours.encode(text)
    before = llama2.ours.decode(ids[:cut])
    if before.endswith("\ufffd"):
        return  # a prompt ends with a character
    growing = GrowingText(llama2.ours.decode, after=ids[:cut])
    parts = []
    for token in ids[cut:]:
        growing.add(token)
        parts.append(growing.take())
    growing.finish()
    assert before + "".join(parts) + growing.take_rest() == text
    assert not any("\ufffd" in part for part in parts)


def test_a_word_behind_a_prompt_keeps_its_space(llama2: Case) -> None:
    """Alone it would be taken for the first of a text."""
    prompt, word = llama2.ours.encode("the"), llama2.theirs.piece_to_id("▁the")
    growing = GrowingText(llama2.ours.decode, after=prompt)
    growing.add(word)
    assert growing.text == " the"


def test_ids_equal_those_of_transformers(llama2: Case) -> None:
    """It drops one space at the beginning of a text; else it reads the same file alike."""
    from transformers import AutoTokenizer

    theirs: Any = AutoTokenizer.from_pretrained(str(llama2.path.parent), gguf_file=llama2.path.name)
    for text in TEXTS:
        if not text.startswith(" "):
            assert llama2.ours.encode(text) == theirs(text).input_ids, text


def test_a_start_token_comes_unless_the_file_says_otherwise(write_toy: WriteToy) -> None:
    """Old files do not say it, and all models with such words expect it."""
    encoded = trained().encode("the")
    said = {None: [1, *encoded], True: [1, *encoded], False: encoded}
    for answer, expected in said.items():
        assert written(write_toy, trained(), add_bos_token=answer).ours.encode("the") == expected
    both = written(write_toy, trained(), add_bos_token=True, add_eos_token=True).ours
    assert both.encode("the") == [1, *encoded, 2]


def test_special_tokens_are_found_in_a_text(llama2: Case) -> None:
    """Chat templates write them; a word behind one begins as a text does."""
    the = llama2.theirs.encode("the")
    assert llama2.ours.encode("<s>the</s>the<unk>") == [1, *the, 2, *the, 0]
    assert llama2.ours.decode([1, *the, 2]) == "the"


def test_words_that_nobody_may_cut_are_found_whole(write_toy: WriteToy) -> None:
    """And are shown, since they are no special tokens."""
    processor = trained(own=("<think>", "a b"))
    words = metadata(processor)
    own = [processor.piece_to_id(each) for each in ("<think>", "a b")]
    for each in own:
        words["token_type"][each] = gguf.TokenType.USER_DEFINED
    ours = load_tokenizer(open_gguf(write_toy(words=words)))
    assert ours.encode("<think>") == own[:1]
    assert ours.encode("<think>a b") == own
    assert ours.decode(own) == "<think>a b"


def test_an_engine_speaks_such_a_vocabulary(llama2: Case) -> None:
    """From a file to a text and back, as far as there are pieces: where bytes make up no character, the
    library damages those before them as well, which were shown already.
    """
    engine = Engine.load(str(llama2.path), cache_tokens=128)
    asked = GenerationRequest("one", "the engine", 12, ignore_eos=True)
    done = next(iter(engine.generate([asked])))
    assert done.finish_reason == "length"
    assert done.prompt_tokens == len(llama2.theirs.encode("the engine"))
    pieces = list(takewhile(lambda each: not llama2.theirs.is_byte(each), done.token_ids))
    assert done.text.strip().startswith(llama2.ours.decode(pieces).strip())


def test_a_folder_with_the_same_words_reads_them_alike(llama2: Case, tmp_path: Path) -> None:
    """Hugging Face folders of such models hold them as merges, with what stands around them."""
    folder = write_language_model(tmp_path / "toy", vocab_size=700)
    open_gguf(llama2.path).vocabulary().pieces.save(str(folder / "tokenizer.json"))
    ours = load_tokenizer(open_checkpoint(folder))
    assert [ours.encode(text) for text in TEXTS] == [llama2.theirs.encode(text) for text in TEXTS]
    assert [ours.decode(ours.encode(text)) for text in TEXTS] == list(TEXTS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scores": None}, r"'tokenizer\.ggml\.scores' should be list, got NoneType"),
        ({"scores": [1.0]}, "700 tokens have 1 scores"),
        ({"scores": [float("nan")] * 700}, "a score in tokenizer.ggml.scores is not a number"),
        ({"scores": [1] * 700}, "tokenizer.ggml.scores should be all float, got 1"),
        ({"token_type": [1]}, "700 tokens have 1 kinds"),
        ({"tokens": ["a"] * 700}, "the token 'a' stands in tokenizer.ggml.tokens twice"),
        ({"tokens": [1] * 700}, "tokenizer.ggml.tokens should be all str, got 1"),
        ({"tokens": ["a" * 5000]}, "1 tokens, the longest of 5,000 characters, are no vocabulary"),
        ({"unknown_token_id": 700}, "unknown token 700 must be from 0 and below 700"),
        ({"eos_token_id": -1}, "eos token -1 must be from 0 and below 700"),
        ({"eot_token_id": 700}, "eot token 700 must be"),
        ({"remove_extra_whitespaces": True}, "remove_extra_whitespaces is not known here"),
        ({"precompiled_charsmap": [1, 2]}, "precompiled_charsmap is not known here"),
    ],
)
def test_words_that_do_not_fit_together_are_refused(
    write_toy: WriteToy, changes: dict[str, Any], said: str
) -> None:
    """Read all the same, they would be other ids without any error."""
    words = metadata(trained()) | changes
    if len(words["tokens"]) == 1:
        words["token_type"] = [1]
    with pytest.raises(ArtifactError, match=rf"toy\.gguf: .*{said}"):
        open_gguf(write_toy(words=words)).vocabulary()


def test_another_kind_of_words_is_named(write_toy: WriteToy) -> None:
    """Of the kinds there are, those of language models of the Llama family are known."""
    with pytest.raises(UnknownNameError, match=r"vocabulary kind 't5'.*known: gpt2, llama"):
        open_gguf(write_toy(words=metadata(trained()) | {"model": "t5"})).vocabulary()


def test_every_token_that_ends_a_turn_ends_a_text(write_toy: WriteToy) -> None:
    """Chat models end a turn by another token than a text."""
    words = metadata(trained()) | {"eot_token_id": 5, "eom_token_id": 7}
    assert open_gguf(write_toy(words=words)).vocabulary().ends == {2, 5, 7}
