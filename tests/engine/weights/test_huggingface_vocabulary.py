"""The tokenizer of a Hugging Face folder against transformers' reading of the same folder."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.folders import TEMPLATE, change_config, word_pieces, write_encoder, write_language_model
from treadle.engine.engine import Engine
from treadle.engine.requests import Message
from treadle.engine.tokenizer import Tokenizer, load_tokenizer
from treadle.engine.weights import open_checkpoint
from treadle.errors import ArgumentError, ArtifactError

TEXTS = ("", " ", "the the in", "naïve café 北 — 👩‍👩‍👧", "<s>user: x</s>", "x\n\n\ty  ", "\x00\u200b\ufeff")
CHAT = (Message("system", "Be short."), Message("user", " the\n"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("whole") / "toy")


@pytest.fixture(scope="module")
def theirs(written: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(written))


@pytest.fixture(scope="module")
def ours(written: Path) -> Tokenizer:
    return read(written)


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A folder of which a test may change anything."""
    return copytree(written, tmp_path / "toy")


def read(folder: Path) -> Tokenizer:
    return load_tokenizer(open_checkpoint(folder))


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | changes))


@pytest.mark.parametrize("text", TEXTS)
def test_ids_equal_the_reference(ours: Tokenizer, theirs: Any, text: str) -> None:
    """The start token that stands before each text included."""
    assert ours.encode(text) == theirs(text).input_ids
    ids = ours.encode(text)
    assert ids[0] == 1
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_has_the_ids_of_the_reference(ours: Tokenizer, theirs: Any, text: str) -> None:
    """Whatever the script."""
    assert ours.encode(text) == theirs(text).input_ids


def test_chats_equal_the_reference(ours: Tokenizer, theirs: Any) -> None:
    """A chat's template writes its own start tokens."""
    turns = [{"role": turn.role, "content": turn.content} for turn in CHAT]
    expected = theirs.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    assert ours.encode_chat(CHAT) == expected


def test_a_template_is_found_in_each_of_its_places(folder: Path) -> None:
    """A file of its own, the config of the tokenizer, a list of several there; or nowhere."""
    expected = read(folder).render(CHAT)
    (folder / "chat_template.jinja").unlink()
    said = folder / "tokenizer_config.json"
    with pytest.raises(ArgumentError, match="no chat template"):
        read(folder).render(CHAT)
    change(said, chat_template=TEMPLATE)
    assert read(folder).render(CHAT) == expected
    change(said, chat_template=[{"name": "tools", "template": ""}, {"name": "default", "template": TEMPLATE}])
    assert read(folder).render(CHAT) == expected


@pytest.mark.parametrize("broken", ["{% for %}", 5, [{"name": "default", "template": 5}], [7]])
def test_a_broken_template_is_found_at_load(folder: Path, broken: object) -> None:
    """Not when the first chat comes."""
    (folder / "chat_template.jinja").unlink()
    change(folder / "tokenizer_config.json", chat_template=broken)
    with pytest.raises(ArtifactError, match=r"chat.template"):
        Engine.load(str(folder))


def test_every_end_token_that_is_listed_ends_a_text(folder: Path) -> None:
    """Chat models have several: of a text, and of a turn."""
    change(folder / "generation_config.json", eos_token_id=[2, 0])
    assert read(folder).ends == {0, 2}
    (folder / "generation_config.json").unlink()
    assert read(folder).ends == {2}
    change_config(folder, eos_token_id=None)
    assert read(folder).ends == {2}  # what the tokenizer calls `eos_token`


@pytest.mark.parametrize("end", [10**6, -1])
def test_an_end_token_beyond_the_vocabulary_is_refused(folder: Path, end: int) -> None:
    """No text would ever end."""
    change(folder / "generation_config.json", eos_token_id=end)
    with pytest.raises(ArtifactError, match=rf"end tokens \[{end}\] must be from 0 and below 263"):
        Engine.load(str(folder))


def test_a_missing_tokenizer_says_how_to_make_one(folder: Path) -> None:
    """Some folders have only a sentencepiece model, or nothing."""
    (folder / "tokenizer.json").unlink()
    with pytest.raises(
        ArtifactError, match=r"tokenizer\.json: cannot be read .*AutoTokenizer.*save_pretrained"
    ):
        Engine.load(str(folder))


def test_a_damaged_tokenizer_is_named(folder: Path) -> None:
    """Half a download."""
    path = folder / "tokenizer.json"
    path.write_text(path.read_text()[:500])
    with pytest.raises(ArtifactError, match=r"tokenizer\.json: cannot be read as a tokenizer"):
        Engine.load(str(folder))


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    """Its last tokens have no row in the embedding."""
    change_config(folder, vocab_size=200)
    with pytest.raises(ArtifactError, match="the tokenizer has 263 tokens and the model knows 200"):
        Engine.load(str(folder))


def test_padding_and_truncation_of_others_are_left_out(tmp_path: Path) -> None:
    """Files are saved with the settings of whoever trained with them."""
    folder = write_encoder(tmp_path / "toy")
    expected = read(folder).encode("the gold" * 20)
    pieces = word_pieces()
    pieces.enable_truncation(8)
    pieces.enable_padding(length=8)
    pieces.save(str(folder / "tokenizer.json"))
    assert read(folder).encode("the gold" * 20) == expected
    assert len(read(folder).encode("the")) == 3


def test_a_list_of_words_is_a_tokenizer_as_well(tmp_path: Path) -> None:
    """Folders of BERT that are older than `tokenizer.json`."""
    folder = write_encoder(tmp_path / "toy")
    texts = ("The golden river!", "北 naïve", "", "zzz [MASK] goldening")
    expected = [read(folder).encode(text) for text in texts]
    words = word_pieces().get_vocab()
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)))
    assert [read(folder).encode(text) for text in texts] == expected
    (folder / "vocab.txt").write_text("the\n")
    with pytest.raises(ArtifactError, match=r"vocab\.txt: cannot be read as a list of words"):
        read(folder)
