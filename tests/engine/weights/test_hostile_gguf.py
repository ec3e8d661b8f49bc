"""GGUF files that hold anything: refused by name, or a model; never a crash, a hang or a flood."""

import os
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.sentence_words import metadata, trained
from tests.engine.weights.hostile import EDGES, anything, little_memory, loads_or_says_why, plain, refusal
from treadle.engine.tokenizer import Tokenizer
from treadle.engine.weights import open_gguf
from treadle.engine.weights.checkpoint import checked
from treadle.engine.weights.gguf_vocabulary import read_vocabulary
from treadle.errors import ArtifactError

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(QUICK, max_examples=3000)


def rewritten(path: Path, where: int, value: bytes, name: str) -> Path:
    data = bytearray(path.read_bytes())
    data[where : where + len(value)] = value
    damaged = path.with_name(name)
    damaged.write_bytes(data)
    return damaged


def numbers(header: int) -> st.SearchStrategy[tuple[int, bytes]]:
    """A place in a header, and a number there, of any width, at the edge of what it can be."""
    width = st.sampled_from([1, 2, 4, 8])
    value = st.tuples(width, st.sampled_from(EDGES) | st.integers(0, 2**64 - 1))
    as_bytes = value.map(lambda each: (each[1] % 2 ** (8 * each[0])).to_bytes(each[0], "little"))
    return st.tuples(st.integers(0, header), as_bytes)


def size_of_header(path: Path) -> int:
    with path.open("rb") as file:
        return file.read().index(b"blk.1.ffn_down.weight") + 200


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    """At every byte, so at each boundary of what a header is made of."""
    writer = gguf.GGUFWriter(tmp_path / "whole.gguf", "llama")
    writer.add_array("texts", ["a", "bc"])
    writer.add_float64("number", 0.5)
    writer.add_tensor("one", np.ones((2, 16), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    data, path = (tmp_path / "whole.gguf").read_bytes(), tmp_path / "cut.gguf"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ArtifactError, match=r"cut\.gguf: "):
            open_gguf(path)


@QUICK
@given(data=st.data())
def test_any_number_in_a_header_may_lie(toy_path: Path, data: st.DataObject) -> None:
    """A length of 2**63, a kind that is none, an offset beyond the end, another dimension."""
    where, value = data.draw(numbers(size_of_header(toy_path)))
    loads_or_says_why(rewritten(toy_path, where, value, "lying.gguf"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@given(data=st.data())
def test_any_numbers_in_a_header_may_lie(toy_path: Path, data: st.DataObject) -> None:
    """The same for longer, with several lies in one file."""
    path = toy_path
    for where, value in data.draw(st.lists(numbers(size_of_header(toy_path)), min_size=1, max_size=3)):
        path = rewritten(path, where, value, "lies.gguf")
    loads_or_says_why(path)


@QUICK
@given(key=st.sampled_from(sorted(metadata(trained()))), value=anything)
def test_any_value_may_stand_in_a_vocabulary(key: str, value: Any) -> None:
    """Of another kind, out of range, too short."""
    check_vocabulary({**metadata(trained()), key: value})


@QUICK
@given(key=st.sampled_from(["tokens", "scores", "token_type"]), at=st.integers(0, 699), value=plain)
def test_any_value_may_stand_in_its_lists(key: str, at: int, value: Any) -> None:
    """One word of many, one score, one kind."""
    words = metadata(trained())
    words[key][at] = value
    check_vocabulary(words)


def check_vocabulary(words: dict[str, Any]) -> None:
    """As a file would say it, and beyond: a file has no lists of several kinds."""

    def said(key: str, kind: type, *default: Any) -> Any:
        return checked(f"words.gguf: {key}", words.get(key.removeprefix("tokenizer.ggml.")), kind, *default)

    def read() -> None:
        tokenizer = Tokenizer(read_vocabulary(Path("words.gguf"), said))
        tokenizer.decode(tokenizer.encode("the inn 北 <s>"))

    refused = refusal(read)
    assert not refused or "words.gguf: " in refused or "known: " in refused, refused


@pytest.mark.parametrize("sizes", [(2**62, 2**62), (2**63, 2), (0, 2**64 - 1), (2**32, 2**32, 2**32, 2**32)])
def test_sizes_whose_product_no_machine_holds_are_refused(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """In a language with numbers of 64 bits they may come out as small."""
    name = b"one"
    header = b"GGUF" + (3).to_bytes(4, "little") + (1).to_bytes(8, "little") + bytes(8)
    tensor = len(name).to_bytes(8, "little") + name + len(sizes).to_bytes(4, "little")
    tensor += b"".join(size.to_bytes(8, "little") for size in sizes) + bytes(4) + bytes(8)
    path = tmp_path / "vast.gguf"
    path.write_bytes(header + tensor + bytes(4096))
    with little_memory(), pytest.raises(ArtifactError, match=r"vast\.gguf"):
        open_gguf(path).tensor("one", tuple(reversed(sizes)))


@pytest.mark.parametrize(
    ("counts", "said"),
    [((2**63, 0), "9223372036854775808 tensors"), ((0, 2**63), "values, at most 65536 are known")],
)
def test_a_count_beyond_all_models_is_refused(tmp_path: Path, counts: tuple[int, int], said: str) -> None:
    """Before anything is read for it."""
    path = tmp_path / "vast.gguf"
    path.write_bytes(
        b"GGUF\3\0\0\0" + b"".join(count.to_bytes(8, "little") for count in counts) + bytes(4096)
    )
    with pytest.raises(ArtifactError, match=rf"vast\.gguf: cannot be read as GGUF .*{said}"):
        open_gguf(path)


def test_a_list_beyond_all_vocabularies_is_refused(toy_path: Path, tmp_path: Path) -> None:
    """Each of its values would take eight times the room that it takes in the file."""
    at = toy_path.read_bytes().index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 8
    path = rewritten(toy_path, at, (2**22 + 1).to_bytes(8, "little"), "long.gguf")
    with pytest.raises(ArtifactError, match=r"long\.gguf: .*a list has 4194305 values, at most 4194304"):
        open_gguf(path)


def test_a_tensor_that_begins_between_two_places_is_refused(toy_path: Path) -> None:
    """Every file has them at multiples of an alignment."""
    begin = toy_path.read_bytes().index(b"\0blk.1.ffn_up.weight") + len(b"\0blk.1.ffn_up.weight") + 4 + 16 + 4
    path = rewritten(toy_path, begin, (33).to_bytes(8, "little"), "astray.gguf")
    with pytest.raises(ArtifactError, match=r"astray\.gguf: .*does not begin at a multiple of 32 bytes"):
        open_gguf(path)


def test_rows_of_no_whole_blocks_are_refused(toy_path: Path) -> None:
    """Together the rows would make whole blocks, and the numbers of one would stand in another."""
    kind = toy_path.read_bytes().index(b"\0blk.1.ffn_down.weight") + len(b"\0blk.1.ffn_down.weight") + 4 + 16
    path = rewritten(toy_path, kind, int(gguf.GGMLQuantizationType.Q8_0).to_bytes(4, "little"), "halves.gguf")
    with pytest.raises(ArtifactError, match=r"halves\.gguf: .*48 numbers are no whole blocks of 32"):
        open_gguf(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody writes into it."""
    path = tmp_path / "pipe.gguf"
    os.mkfifo(path)
    with pytest.raises(ArtifactError, match=r"pipe\.gguf: .*it is no file"):
        open_gguf(path)


def test_a_file_of_nothing_takes_no_memory(tmp_path: Path) -> None:
    """A terabyte of zeros, as a disk keeps it."""
    path = tmp_path / "empty.gguf"
    path.touch()
    os.truncate(path, 2**40)
    with little_memory(), pytest.raises(ArtifactError, match=r"empty\.gguf: cannot be read as GGUF"):
        open_gguf(path)
