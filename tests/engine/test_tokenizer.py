"""Ids and chats against transformers' reading of the same file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from treadle.engine.engine import Engine
from treadle.engine.requests import Message
from treadle.engine.tokenizer import Tokenizer, load_tokenizer
from treadle.engine.weights import open_gguf
from treadle.errors import ArgumentError, ArtifactError, UnknownNameError

TEXTS = (
    "",
    " ",
    "Hello, world!",
    "In 1776, 13 colonies; 3.14159 and 1,000,000 (or 10^6).",
    "\n\n1. First\n\n2. Second\r\n\tindented",
    "don't we'll THEY'RE it's 'quoted'",
    "naïve café — “quotes” … ½ ² №",
    "日本語 русский العربية हिन्दी 한국어",
    "👩‍👩‍👧 🎉 e\u0301",
    "    def f(x):\n        return x ** 2  # comment",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|> <repo_name>",
    "a" * 300 + "  trailing   ",
    "\x00\x01\x7f\u200b\ufeff",
)


@pytest.fixture(scope="module")
def theirs(smollm_folder: Path, smollm_file: str) -> Any:
    """As transformers reads the file, but with the cut that the model was published with."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(smollm_folder), gguf_file=smollm_file)
    digits, words = pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    return tokenizer


@pytest.fixture(scope="module")
def toy_tokenizer(toy_path: Path) -> Tokenizer:
    return toy(toy_path)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_equal_the_reference(smollm: Engine, theirs: Any, text: str) -> None:
    """One id off, and the model reads another text than it was trained on."""
    ids = smollm.tokenizer.encode(text)
    assert ids == theirs(text).input_ids
    assert smollm.tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_has_the_ids_of_the_reference(smollm: Engine, theirs: Any, text: str) -> None:
    """Whatever the script; a few bytes have no token in this vocabulary, and are lost on both sides alike."""
    ids = smollm.tokenizer.encode(text)
    assert ids == theirs(text).input_ids
    assert smollm.tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_vocabulary_with_all_bytes_loses_nothing(toy_tokenizer: Tokenizer, text: str) -> None:
    """Byte-level pieces give back every text, of any script."""
    assert toy_tokenizer.decode(toy_tokenizer.encode(text)) == text


def test_chats_equal_the_reference(smollm: Engine, theirs: Any) -> None:
    """The template decides what the model takes for a question and what for an answer."""
    chats = (
        (Message("user", "Hi"),),
        (
            Message("system", "Be short."),
            Message("user", "  Hi\n"),
            Message("assistant", "Yes?"),
            Message("user", "{{x}}"),
        ),
    )
    for chat in chats:
        turns = [{"role": turn.role, "content": turn.content} for turn in chat]
        assert smollm.tokenizer.render(chat) == theirs.apply_chat_template(
            turns, add_generation_prompt=True, tokenize=False
        )
        expected = theirs.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
        assert smollm.tokenizer.encode_chat(chat) == expected


def toy(path: Path) -> Tokenizer:
    return load_tokenizer(open_gguf(path))


def test_the_start_token_comes_where_the_file_asks_for_it(write_toy: Callable[..., Path]) -> None:
    """Plain prompts begin with it; a chat's template writes its own."""
    tokenizer = toy(write_toy(add_bos=True))
    assert tokenizer.encode("the")[0] == 1
    assert tokenizer.encode_chat((Message("user", "the"),)).count(1) == 2


def test_a_refusal_of_the_template_is_the_callers_error(toy_path: Path) -> None:
    """Templates raise for roles that they do not know."""
    with pytest.raises(ArgumentError, match="refuses these messages: no tools"):
        toy(toy_path).render((Message("tool", "x"),))


def test_a_template_cannot_reach_out(write_toy: Callable[..., Path]) -> None:
    """It comes with weights from anywhere, and runs here."""
    path = write_toy(template="{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(ArgumentError, match="unsafe"):
        toy(path).render((Message("user", "x"),))


@pytest.mark.parametrize(
    "template", ["{{ 1 / 0 }}", "{% for i in range(10**9) %}{% endfor %}", "{{ ''.x.y }}"]
)
def test_a_template_that_fails_in_any_way_is_the_requests_error(
    write_toy: Callable[..., Path], template: str
) -> None:
    """It is a program: its division by zero must not end the requests beside it."""
    with pytest.raises(ArgumentError, match="the chat template refuses these messages"):
        toy(write_toy(template=template)).render((Message("user", "x"),))


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages | tojson }}{{ messages[0] | tojson(indent=2) }}",
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
        "{% if tools is not none %}tools{% endif %}{% if documents is defined %}{{ documents }}{% endif %}",
        "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m.role }}{% endfor %}",
    ],
)
def test_templates_are_given_what_transformers_gives_them(
    write_toy: Callable[..., Path], template: str
) -> None:
    """They are written for it: its filter, its tag, its names."""
    from transformers.utils.chat_template_utils import render_jinja_template

    chat = (Message("user", "<b> & 'ü' 北"), Message("assistant", "yes"))
    turns = [{"role": turn.role, "content": turn.content} for turn in chat]
    rendered: Any = render_jinja_template([turns], chat_template=template, add_generation_prompt=True)
    assert toy(write_toy(template=template)).render(chat) == rendered[0][0]


def test_a_broken_or_missing_template_is_said(write_toy: Callable[..., Path]) -> None:
    """A broken one at load, a missing one when a chat asks for it."""
    with pytest.raises(ArtifactError, match="no template"):
        toy(write_toy(template="{% for %}"))
    with pytest.raises(ArgumentError, match="no chat template"):
        toy(write_toy(template="")).render((Message("user", "x"),))


@pytest.mark.parametrize("pre", ["default", "gpt-2", "qwen2", "llama-bpe", "llama3", "tekken"])
def test_pre_tokenisers_cut_as_the_reference_does(write_toy: Callable[..., Path], pre: str) -> None:
    """Digits one by one or by three, line ends by themselves, small letters apart from capitals."""
    from transformers import AutoTokenizer

    path = write_toy(pre=pre, words=every_pair_of_ascii() | {"pre": pre, "add_bos_token": False})
    reference: Any = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    ours = toy(path)
    for text in (*TEXTS, "1000 the 00", "x\n\n the\r\n", "McDonald's HTTPServer/\n/x", "a  1\t\t2"):
        if "<|" not in text:  # the reference adds the special tokens of the real models
            assert ours.encode(text) == reference(text).input_ids, text


def every_pair_of_ascii() -> dict[str, Any]:
    """A vocabulary whose ids show where a text was cut: any two letters, digits or signs are a word."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    common = [*"abcdehimnoprstxABCDHMPST0123456789'./,;:", "Ġ", "Ċ", "č", "ĉ"]
    merges = [(left, right) for left in common for right in common]
    words = ["<unk>", "<s>", "</s>", *letters, *(left + right for left, right in merges)]
    return {
        "model": "gpt2",
        "tokens": words,
        "token_type": [3, 3, 3] + [1] * (len(words) - 3),
        "merges": [f"{left} {right}" for left, right in merges],
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def test_llama_3_takes_a_part_that_is_a_word_as_it_is(write_toy: Callable[..., Path]) -> None:
    """Whatever its merges make of it; a start token stands before, though the file does not say."""
    words = every_pair_of_ascii()
    words["tokens"] += ["them", "Ġthem"]
    words["token_type"] += [1, 1]
    last = len(words["tokens"])
    assert toy(write_toy(words=words | {"pre": "llama-bpe"})).encode("them them") == [1, last - 2, last - 1]
    assert last - 1 not in toy(write_toy(words=words | {"pre": "qwen2"})).encode("them them")


def test_an_unknown_pre_tokeniser_is_named(write_toy: Callable[..., Path]) -> None:
    """Another way of cutting gives other ids without any error."""
    with pytest.raises(UnknownNameError, match=r"'viking'.*known: .*llama-bpe, .*smollm"):
        toy(write_toy(pre="viking"))


def test_words_that_stand_twice_are_refused(write_toy: Callable[..., Path]) -> None:
    """Which of the two would a text be?"""
    words = every_pair_of_ascii()
    words["tokens"][300] = words["tokens"][301]
    with pytest.raises(ArtifactError, match=r"toy\.gguf: the token .* stands in .*tokens twice"):
        toy(write_toy(words=words))
