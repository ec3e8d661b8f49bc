"""Hugging Face folders that hold anything: refused by name, or a model; never a crash, a hang or a flood."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import orjson
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from tests.engine.folders import change_config, write_encoder, write_language_model
from tests.engine.weights.hostile import EDGES, anything, embeds, little_memory, loads_or_says_why, talks
from treadle.engine.engine import Engine
from treadle.engine.tokenizer import load_tokenizer
from treadle.engine.weights import open_checkpoint
from treadle.errors import ArgumentError, ArtifactError

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(QUICK, max_examples=1000)
JSON_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
ENCODER_FILES = ("config.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json")
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("whole") / "toy")


@pytest.fixture(scope="module")
def scratch(written: Path) -> Path:
    """A folder of which one file at a time is another: each test puts back what was there."""
    return copytree(written, written.with_name("scratch"))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("parts") / "toy", shard="20KB")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_encoder(tmp_path_factory.mktemp("encoder") / "toy")
    (folder / "1_Pooling").mkdir()
    said = (
        [{"type": "models.Transformer", "path": ""}, {"type": "models.Pooling", "path": "1_Pooling"}],
        {"max_seq_length": 40},
        {"pooling_mode_mean_tokens": True},
    )
    for name, value in zip(ENCODER_FILES[1:], said, strict=True):
        (folder / name).write_bytes(orjson.dumps(value))
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A folder of which a test may change anything."""
    return copytree(written, tmp_path / "toy")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in JSON, by the keys and numbers that lead there; of the many alike, a few."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner)[:24]:
        yield from places(each, (*path, key))


def with_value(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """A copy with something else at a place."""
    if not path:
        return other
    copy = value.copy()
    copy[path[0]] = with_value(value[path[0]], path[1:], other)
    return copy


def check_with(folder: Path, name: str, data: bytes, load: Any = talks) -> bool:
    """Whether the folder with another file of that name is still a model; see `loads_or_says_why`."""
    before = (folder / name).read_bytes()
    (folder / name).write_bytes(data)
    try:
        return loads_or_says_why(folder, load)
    finally:
        (folder / name).write_bytes(before)


def check_any_value(folder: Path, name: str, data: st.DataObject, load: Any = talks) -> None:
    whole = orjson.loads((folder / name).read_bytes())
    place = data.draw(st.sampled_from(list(places(whole))))
    check_with(folder, name, orjson.dumps(with_value(whole, place, data.draw(anything))), load)


@pytest.mark.parametrize("name", JSON_FILES)
@QUICK
@given(data=st.data())
def test_any_value_may_stand_anywhere(scratch: Path, name: str, data: st.DataObject) -> None:
    """Of another kind, out of range, nested where it was plain."""
    check_any_value(scratch, name, data)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", JSON_FILES)
@LONG
@given(data=st.data())
def test_any_value_may_stand_anywhere_for_long(scratch: Path, name: str, data: st.DataObject) -> None:
    """The same for longer."""
    check_any_value(scratch, name, data)


@QUICK
@given(data=st.data())
def test_any_value_may_stand_in_an_index(parts: Path, data: st.DataObject) -> None:
    """Another part, no part, a place elsewhere."""
    check_any_value(parts, INDEX, data)


@pytest.mark.parametrize("name", ENCODER_FILES)
@settings(QUICK, max_examples=40)
@given(data=st.data())
def test_any_value_may_stand_anywhere_of_an_encoder(encoder: Path, name: str, data: st.DataObject) -> None:
    """What sentence-transformers keeps beside a model is no safer."""
    check_any_value(encoder, name, data, embeds)


@QUICK
@given(
    field=st.sampled_from(["dtype", "shape", "data_offsets"]),
    value=anything | st.lists(st.sampled_from(EDGES)),
)
def test_any_value_may_stand_in_a_header(scratch: Path, field: str, value: Any) -> None:
    """A type that is none, a shape that does not fit, offsets that overlap or run out of the file."""
    check_with(scratch, WEIGHTS, with_header(scratch / WEIGHTS, ("model.norm.weight", field), value))


def with_header(path: Path, place: tuple[Any, ...], value: Any) -> bytes:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = orjson.dumps(with_value(orjson.loads(data[8 : 8 + size]), place, value))
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


@pytest.mark.parametrize("size", EDGES)
def test_a_header_of_any_length_is_refused(scratch: Path, size: int) -> None:
    """It stands in the first eight bytes."""
    data = (scratch / WEIGHTS).read_bytes()
    assert not check_with(scratch, WEIGHTS, size.to_bytes(8, "little") + data[8:])


def test_weights_cut_anywhere_are_refused(tmp_path: Path) -> None:
    """At every byte."""
    save_file({"one": torch.ones(2, 3), "two": torch.ones(4)}, tmp_path / "whole.safetensors")
    data = (tmp_path / "whole.safetensors").read_bytes()
    (tmp_path / "config.json").write_text("{}")
    for size in range(len(data)):
        (tmp_path / WEIGHTS).write_bytes(data[:size])
        with pytest.raises(ArtifactError, match=r"model\.safetensors: cannot be read as safetensors"):
            open_checkpoint(tmp_path)


def test_a_name_that_stands_twice_in_a_header_is_refused(scratch: Path) -> None:
    """One of the two would hide the other, whose bytes would belong to nobody."""
    data = (scratch / WEIGHTS).read_bytes()
    twice = data.replace(b'"model.layers.1.mlp.up_proj.weight"', b'"model.layers.0.mlp.up_proj.weight"')
    assert len(twice) == len(data)
    assert not check_with(scratch, WEIGHTS, twice)


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize("bomb", ["[" * 10**6, '{"a":' * 10**6, "[" * 900 + "]" * 900])
def test_json_of_any_depth_is_refused(scratch: Path, name: str, bomb: str) -> None:
    """Readers call themselves for each level."""
    assert not check_with(scratch, name, bomb.encode())
    whole = orjson.loads((scratch / name).read_bytes())
    for key in whole:
        check_with(scratch, name, json.dumps({**whole, key: "BOMB"}).replace('"BOMB"', bomb).encode())


@pytest.mark.parametrize("name", [*JSON_FILES, WEIGHTS, "chat_template.jinja"])
def test_files_of_nothing_take_no_memory(folder: Path, name: str) -> None:
    """A terabyte of zeros, as a disk keeps it."""
    os.truncate(folder / name, 2**40)
    assert not loads_or_says_why(folder)


@pytest.mark.parametrize("name", [*JSON_FILES, WEIGHTS])
def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path, name: str) -> None:
    """Nobody writes into it."""
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ArtifactError, match=r"it is no file|no weights"):
        Engine.load(str(folder))


def split(pattern: str) -> dict[str, Any]:
    """A pre-tokeniser."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


SHORT_MAP = {"type": "Precompiled", "precompiled_charsmap": "/////w=="}  # says that four gigabytes follow
NO_MAP = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
STRIP = {"type": "Strip", "content": "a", "start": 2**64 - 1, "stop": 2**64 - 1}
START = {"type": "TemplateProcessing", "pair": [], "special_tokens": {}}
WORDS = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "vocab": {"a": 0}}


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": SHORT_MAP},
        {"normalizer": {"type": "Sequence", "normalizers": [SHORT_MAP]}},
        {"normalizer": NO_MAP},
        {"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}},
        {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        {"pre_tokenizer": split("(" * 9999)},
        {"post_processor": {**START, "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}]}},
        {"decoder": STRIP},
        {"model": {"type": "BPE", "vocab": {"a": 2**32 - 1, "b": 0}, "merges": []}},
        {"model": {**WORDS, "max_input_chars_per_word": 100}},
        {"added_tokens": [{"id": -1, "content": "x"}]},
    ],
    ids=lambda changes: orjson.dumps(changes).decode()[:60],
)
def test_a_tokenizer_that_fails_on_every_text_is_refused_at_load(
    folder: Path, changes: dict[str, Any]
) -> None:
    """Some by an error that `except Exception` does not see, some by asking for all memory."""
    path = folder / "tokenizer.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | changes))
    with little_memory(), pytest.raises(ArtifactError, match="toy"):
        Engine.load(str(folder))


def test_a_tokenizer_that_fails_on_a_text_fails_its_request_only(folder: Path) -> None:
    """A pattern may take time by the length of a text to the power of it; the library gives up."""
    path = folder / "tokenizer.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"pre_tokenizer": split("(a+)+$")}))
    tokenizer = load_tokenizer(open_checkpoint(folder))
    with pytest.raises(ArgumentError, match="the model's tokenizer cannot take this text"):
        tokenizer.encode("a" * 40 + "!")
    assert tokenizer.encode("the inn")


@pytest.mark.parametrize(
    "template",
    [
        "{{ 10 ** 10 ** 9 }}",
        "{{ 'a' * 10 ** 11 }}",
        "{{ 'a' | center(10 ** 11) }}",
        "{% if 10 ** 10 ** 9 %}{% endif %}",
    ],
)
def test_loading_works_out_nothing_of_a_template(folder: Path, template: str) -> None:
    """What stands for itself would be computed ahead, for years or in all memory there is."""
    (folder / "chat_template.jinja").write_text(template)
    with little_memory():
        assert load_tokenizer(open_checkpoint(folder)).size == 263


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + "(" * 50_000 + " }}",
        "{{ " + "not " * 25_000 + "x }}",
        "{{ x" + ".y" * 50_000 + " }}",
        "{{ " + "9" * 5000 + " }}",
        "{% for x in y %}" * 30 + "{% endfor %}" * 30,
        "{{ x }}" * 50_000,
    ],
    ids=lambda template: template[:20],
)
def test_a_template_that_no_compiler_takes_is_refused(folder: Path, template: str) -> None:
    """Each in an error of its own."""
    (folder / "chat_template.jinja").write_text(template)
    with little_memory(), pytest.raises(ArtifactError, match="chat template"):
        load_tokenizer(open_checkpoint(folder))


def test_tokens_that_were_added_later_are_read(folder: Path) -> None:
    """They may stand in the config of the tokenizer only; transformers reads them there as well."""
    from transformers import AutoTokenizer

    path = folder / "tokenizer_config.json"
    later = {"263": {"content": "<late>", "special": True}, "264": {"content": "<later>", "special": False}}
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"added_tokens_decoder": later}))
    ours, theirs = load_tokenizer(open_checkpoint(folder)), AutoTokenizer.from_pretrained(str(folder))
    text = "the<late> in<later>"
    assert ours.encode(text) == theirs(text).input_ids
    assert {263, 264} <= set(ours.encode(text))
    assert ours.decode([263, 264]) == "<later>"
    later["266"] = {"content": "<astray>", "special": False}
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"added_tokens_decoder": later}))
    with pytest.raises(ArtifactError, match="the token '<astray>' should be 266, got 265"):
        load_tokenizer(open_checkpoint(change_config(folder, vocab_size=300)))
