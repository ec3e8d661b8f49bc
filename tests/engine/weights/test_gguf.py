"""Opening GGUF files, good and bad."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from treadle.engine import room
from treadle.engine.engine import Engine
from treadle.engine.resources.pages import PageLedger
from treadle.engine.scheduler import Preemption
from treadle.engine.weights import open_gguf
from treadle.engine.weights.gguf_file import read_gguf
from treadle.errors import ArgumentError, ArtifactError, UnknownNameError


@pytest.mark.parametrize("part", [0.0, 0.01, 0.1, 0.3, 0.6, 0.95, 0.999])
def test_a_truncated_file_is_refused_at_load(toy_path: Path, tmp_path: Path, part: float) -> None:
    """A download that broke off, wherever it broke, must not become a model that talks nonsense."""
    data = toy_path.read_bytes()
    path = tmp_path / "short.gguf"
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ArtifactError, match=r"short\.gguf"):
        Engine.load(str(path))


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_refused_or_still_a_model(toy_path: Path, tmp_path: Path, seed: int) -> None:
    """Wherever a bit has rotted in the metadata, the answer names the file, and is no crash."""
    chance = random.Random(seed)
    data = bytearray(toy_path.read_bytes())
    for _ in range(chance.choice([1, 1, 3])):
        data[chance.randrange(9000)] = chance.randrange(256)
    path = tmp_path / "rotten.gguf"
    path.write_bytes(data)
    try:
        Engine.load(str(path), cache_tokens=64)
    except ArtifactError as error:
        assert "rotten.gguf" in str(error)  # noqa: PT017 - both outcomes are right
    except UnknownNameError as error:
        assert "known: " in str(error)  # noqa: PT017


def test_a_list_of_any_length_ends_with_the_file(toy_path: Path, tmp_path: Path) -> None:
    """One bit in the length of a list of numbers, and reading it would not end in a lifetime."""
    path = tmp_path / "rotten.gguf"
    data = toy_path.read_bytes()
    at = data.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 4 + 4
    path.write_bytes(data[: at + 7] + b"\x01" + data[at + 8 :])
    with pytest.raises(ArtifactError, match=r"rotten\.gguf: cannot be read as GGUF"):
        Engine.load(str(path))


def test_words_and_merges_that_do_not_fit_are_refused(toy_path: Path, tmp_path: Path) -> None:
    """The library's error has no kind of its own, and does not know the file."""
    path = tmp_path / "rotten.gguf"
    path.write_bytes(toy_path.read_bytes().replace(b"\0\0\0\0i n", b"\0\0\0\0i \x01"))
    with pytest.raises(ArtifactError, match=r"rotten\.gguf: words and merges do not fit"):
        Engine.load(str(path))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"heads": 0, "kv_heads": 0}, "holds none"),
        ({"kv_heads": 3}, "whole groups per key head"),
        ({"head_width": 7}, "must be even"),
    ],
)
def test_sizes_of_no_model_are_refused_with_the_file(
    write_toy: Callable[..., Path], sizes: dict[str, int], said: str
) -> None:
    """Found before any weight is read."""
    with pytest.raises(ArtifactError, match=rf"toy\.gguf: .*{said}"):
        Engine.load(str(write_toy(**sizes)))


def test_tensors_that_nobody_reads_are_refused(write_toy: Callable[..., Path]) -> None:
    """A model with biases, run without them, writes another model's text without any error."""
    path = write_toy(change={"blk.0.attn_norm.bias": np.ones(32, np.float32)})
    with pytest.raises(ArtifactError, match=r"toy\.gguf: 1 tensors .*layers\.0\.input_layernorm\.bias'"):
        Engine.load(str(path))


def test_a_context_of_billions_needs_no_memory(write_toy: Callable[..., Path]) -> None:
    """Positions are kept as far as the cache goes; a cache for all of them is an argument out of range."""
    path = str(write_toy(context=2**32 - 1))
    assert Engine.load(path, cache_tokens=64).node.model.config.context == 2**32 - 1
    with pytest.raises(ArgumentError, match="does not fit into memory"):
        Engine.load(path, cache_tokens=2**60)


@pytest.mark.parametrize("options", [{"cache_tokens": 4096}, {"cache_tokens": 1024, "host_tokens": 3072}])
def test_a_cache_that_does_not_fit_is_refused_by_its_size_before_any_of_it_is_built(
    toy_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """What is kept for each page would fill the memory first, and the system would end the process."""
    needed = 4096 * 2 * 2 * 2 * 8 * 4  # tokens, layers, keys and values, heads, width, bytes
    monkeypatch.setattr(room, "_memory", lambda: needed - 1)
    monkeypatch.setattr(PageLedger, "__init__", lambda *_: pytest.fail("pages were made"))
    preemption: Preemption = "offload" if "host_tokens" in options else "never"
    said = r"4,096 tokens does not fit .* needs 0\.0 GB, this machine has 0\.0 GB: load with fewer"
    with pytest.raises(ArgumentError, match=said):
        Engine.load(str(toy_path), preemption=preemption, **options)
    monkeypatch.undo()
    with pytest.raises(ArgumentError, match=r"10,000,000,000 tokens .* needs 2,560\.0 GB, this machine has"):
        Engine.load(str(toy_path), cache_tokens=10**10)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """The name says GGUF, the content does not."""
    path = tmp_path / "page.gguf"
    path.write_text("<html>not found</html>" * 100)
    with pytest.raises(ArtifactError, match=r"page\.gguf: cannot be read as GGUF"):
        Engine.load(str(path))


def test_an_unknown_architecture_is_named(write_toy: Callable[..., Path]) -> None:
    """The file is fine, only not for this engine."""
    with pytest.raises(UnknownNameError, match=r"architecture 'mamba'.*llama"):
        Engine.load(str(write_toy(architecture="mamba")))


def test_metadata_is_checked_for_its_kind(toy_path: Path) -> None:
    """A number where a text should be is found where it is read, with its key."""
    checkpoint = open_gguf(toy_path)
    assert checkpoint.value("num_hidden_layers", int) == 2
    assert checkpoint.value("nothing", int, 5) == 5
    with pytest.raises(ArtifactError, match=r"'llama.block_count' should be str, got int"):
        checkpoint.value("num_hidden_layers", str)
    with pytest.raises(ArtifactError, match=r"'llama.nothing' should be int, got NoneType"):
        checkpoint.value("nothing", int)


def write_values(path: Path, write: Callable[[gguf.GGUFWriter], None]) -> Path:
    """A file with the metadata that `write` adds, and one tensor."""
    writer = gguf.GGUFWriter(path, "llama")
    write(writer)
    writer.add_tensor("one", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_kind_of_metadata_is_read_as_written(tmp_path: Path) -> None:
    """The header is read here, not by the library that writes it."""

    def write(writer: gguf.GGUFWriter) -> None:
        for bits in (8, 16, 32, 64):
            getattr(writer, f"add_uint{bits}")(f"u{bits}", 2**bits - 1)
            getattr(writer, f"add_int{bits}")(f"i{bits}", -(2 ** (bits - 1)))
        writer.add_float32("f32", 0.5)
        writer.add_float64("f64", 0.1)
        writer.add_bool("yes", True)
        writer.add_string("text", "naïve 北\n")
        writer.add_array("texts", ["a", "", "ü"])
        writer.add_array("numbers", [1, -2, 3])
        writer.add_array("none", [])

    found = read_gguf(write_values(tmp_path / "all.gguf", write))
    expected = {f"u{bits}": 2**bits - 1 for bits in (8, 16, 32, 64)}
    expected |= {f"i{bits}": -(2 ** (bits - 1)) for bits in (8, 16, 32, 64)}
    expected |= {"f32": 0.5, "f64": 0.1, "yes": True, "text": "naïve 北\n"}
    expected |= {"texts": ["a", "", "ü"], "numbers": [1, -2, 3]}
    assert {key: found.metadata[key] for key in expected} == expected
    assert found.metadata["general.architecture"] == "llama"
    assert found.tensors["one"].shape == (2, 3)


def test_a_tensor_is_read_from_where_an_alignment_puts_it(tmp_path: Path) -> None:
    """Files may ask for another alignment than 32 bytes."""
    path = write_values(tmp_path / "wide.gguf", lambda writer: writer.add_custom_alignment(4096))
    found = open_gguf(path).tensor("one", (2, 3))
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


def placed(data: bytes, name: str) -> int:
    """Where the kind of a matrix stands in a header; its offset comes 4 bytes later."""
    return data.index(b"\0" + name.encode()) + 1 + len(name) + 4 + 2 * 8


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (0, (77).to_bytes(4, "little"), "cannot be read: 77 is not a valid GGMLQuantizationType"),
        (4, (2**40).to_bytes(8, "little"), "truncated"),
        (4, (32).to_bytes(8, "little"), "overlap"),
        (-16, (2**62).to_bytes(8, "little"), "truncated"),
        (-20, (9).to_bytes(4, "little"), "9 dimensions"),
    ],
)
def test_a_header_that_lies_about_a_tensor_is_refused(
    toy_path: Path, tmp_path: Path, at: int, value: bytes, said: str
) -> None:
    """Its kind, its place, its size: weights read from elsewhere are a model that talks nonsense."""
    data = bytearray(toy_path.read_bytes())
    begin = placed(bytes(data), "blk.1.ffn_up.weight") + at
    data[begin : begin + len(value)] = value
    path = tmp_path / "lying.gguf"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=rf"lying\.gguf: .*{said}"):
        open_gguf(path)


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [(4, 9, "it has version 9"), (7, 3, "it has version"), (0, 0, "it begins with")],
)
def test_another_version_or_byte_order_is_refused(
    toy_path: Path, tmp_path: Path, at: int, value: int, said: str
) -> None:
    """What is not known is not guessed."""
    data = bytearray(toy_path.read_bytes())
    data[at] = value
    path = tmp_path / "other.gguf"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=rf"other\.gguf: cannot be read as GGUF \({said}"):
        open_gguf(path)


def test_a_name_that_stands_twice_is_refused(toy_path: Path, tmp_path: Path) -> None:
    """Which of the two would be meant?"""
    path = tmp_path / "twice.gguf"
    path.write_bytes(toy_path.read_bytes().replace(b"blk.1.ffn_up.weight", b"blk.0.ffn_up.weight"))
    with pytest.raises(ArtifactError, match=r"'blk\.0\.ffn_up\.weight' stands in it twice"):
        open_gguf(path)


def test_names_are_those_of_hugging_face(toy_path: Path) -> None:
    """A family is written once, in one language."""
    checkpoint = open_gguf(toy_path)
    assert "model.layers.1.self_attn.q_proj.weight" in checkpoint.names
    assert {"model.embed_tokens.weight", "model.norm.weight"} <= set(checkpoint.names)
    assert not [name for name in checkpoint.names if name.startswith(("blk.", "token_", "output"))]
    assert checkpoint.value("tie_word_embeddings", bool) is True
