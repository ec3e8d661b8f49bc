"""The compiled library: made once, never loaded damaged, and done without where it cannot be had."""

import ctypes
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.engine.kernels.passes import config, run, weights
from treadle.engine.kernels.library import cache_folder, load_library, shared_library
from treadle.engine.models import building
from treadle.engine.models.build import Build, Kernels, Precision
from treadle.engine.models.llama import Llama
from treadle.engine.models.native_llama import NativeLlama
from treadle.errors import ArgumentError, EngineError

LOAD = "import sys, pathlib, treadle.engine.kernels.library as it; it.load_library(pathlib.Path(sys.argv[1]))"


class Wrapped:
    """A compiler that notes what it is asked to do, and copies what it has compiled before from `kept`."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self.path, self.log = folder / "compiler", folder / "log"
        self.well = (
            f'if [[ "$*" != *" -c "* ]]; then exec g++ "$@"; fi\n'
            f'if [[ ! -f {kept} ]]; then g++ "$@" -O0 -o {kept}.new && mv {kept}.new {kept}; fi\n'
            f'exec cp {kept} "${{@: -1}}"'
        )
        self.write(self.well)

    def write(self, action: str) -> None:
        self.path.write_text(f'#!/bin/bash\necho "$@" >> {self.log}\n{action}\n')
        self.path.chmod(0o755)

    @property
    def compiled(self) -> int:
        return sum(" -c " in line for line in self.log.read_text().splitlines())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once for all tests here."""
    return tmp_path_factory.mktemp("kept") / "llama.o"


@pytest.fixture
def compiler(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wrapped:
    wrapped = Wrapped(tmp_path, kept)
    monkeypatch.setenv("CXX", str(wrapped.path))
    return wrapped


@pytest.fixture
def forgotten() -> Iterator[None]:
    """No library was looked for yet in this process, and what is found is not kept."""
    looks = (shared_library, building._library_if_any)
    for look in looks:
        look.cache_clear()
    yield
    for look in looks:
        look.cache_clear()


def process(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LOAD, str(folder)], stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )


def test_it_is_compiled_once_and_again_when_damaged(compiler: Wrapped, tmp_path: Path) -> None:
    """Half a library would be a crash in the middle of a pass."""
    folder = tmp_path / "cache"
    load_library(folder)
    load_library(folder)
    assert compiler.compiled == 1
    (library,) = folder.glob("*.so")
    whole = library.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        library.unlink()  # this process has the old one loaded
        library.write_bytes(damaged)
        assert isinstance(load_library(folder), ctypes.CDLL)
        assert library.read_bytes() == whole
    assert compiler.compiled == 4
    assert sorted(each.suffix for each in folder.iterdir()) == [".lock", ".so"]


def test_two_processes_compile_once(compiler: Wrapped, tmp_path: Path) -> None:
    """Several engines start at the same time on one machine."""
    both = [process(tmp_path / "cache") for _ in range(2)]
    assert [each.communicate()[1] for each in both] == ["", ""]
    assert compiler.compiled == 1


def test_a_killed_compilation_holds_nobody_up(compiler: Wrapped, tmp_path: Path) -> None:
    """What it had locked and half written is the next one's."""
    compiler.write('[[ "$*" == *" -c "* ]] && kill -9 $PPID\nexec g++ "$@"')
    killed = process(tmp_path / "cache")
    killed.communicate()
    assert killed.returncode == -9
    compiler.write(compiler.well)
    assert isinstance(load_library(tmp_path / "cache"), ctypes.CDLL)


def test_another_compiler_makes_another_library(compiler: Wrapped, tmp_path: Path) -> None:
    """A library of an older compiler may lack what this one knows of the processor."""
    load_library(tmp_path / "cache")
    compiler.write(f'[[ "$*" == --version ]] && echo another\n{compiler.well}')
    load_library(tmp_path / "cache")
    assert len(list((tmp_path / "cache").glob("*.so"))) == 2


def test_a_failing_compiler_is_quoted(compiler: Wrapped, tmp_path: Path) -> None:
    """Without its words nobody could mend it."""
    compiler.write('[[ "$*" == --version ]] && exit 0\necho "no space left" >&2; exit 3')
    with pytest.raises(EngineError, match=r"(?s)compiler failed with exit code 3.*no space left"):
        load_library(tmp_path / "cache")


def test_a_folder_that_cannot_be_written_is_named(compiler: Wrapped, tmp_path: Path) -> None:
    """As for a home folder that a service account does not have."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match=r"cannot be kept in .*/file"):
        load_library(tmp_path / "file")


@pytest.mark.usefixtures("compiler")
def test_a_compilation_is_said_before_it_begins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It takes fifteen seconds, in which a first start would look as if it hung; later ones say nothing."""
    with caplog.at_level(logging.INFO, logger="treadle.engine"):
        for _ in range(2):
            load_library(tmp_path)
    (record,) = caplog.records
    assert record.getMessage().startswith("compiling the engine's kernels for this processor, once")


@pytest.mark.usefixtures("forgotten")
def test_without_a_compiler_torch_runs_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A container without g++ serves all the same, and nobody wonders why it is slow."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with caplog.at_level(logging.WARNING, logger="treadle"):
        models = [build_here("auto") for _ in range(2)]
    assert [type(model) for model in models] == [Llama, Llama]
    (record,) = caplog.records
    assert "without its compiled kernels" in record.getMessage()
    assert "install g++" in record.getMessage()
    with pytest.raises(EngineError, match="install g\\+\\+"):
        build_here("native")


def build_here(kernels: Kernels) -> Llama | NativeLlama:
    return building.build_llama(config(), weights(), Build(kernels=kernels))


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 2e-5), ("bfloat16", 0.01), ("int8", 0.01)])
def test_code_for_any_processor_computes_the_same(
    precision: Precision, tolerance: float, portable: ctypes.CDLL
) -> None:
    """The products that this processor may have instructions for have a plain form."""
    steps = [[(0, 40), (1, 3)], [(0, 1), (1, 1)]]
    expected = run(NativeLlama(config(), weights(), shared_library(), precision=precision), steps)
    got = run(NativeLlama(config(), weights(), portable, precision=precision), steps)
    for place, scores in expected.items():
        torch.testing.assert_close(got[place], scores, rtol=0, atol=tolerance * float(scores.abs().max()))


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compiled for no processor in particular."""
    folder = tmp_path_factory.mktemp("portable")
    wrapped = Wrapped(folder, folder / "llama.o")
    wrapped.write('exec g++ "${@/-march=native/-O0}" -O0')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(wrapped.path))
        return load_library(folder / "cache")


def test_the_folder_comes_from_the_environment_or_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order; and without either it is the user's cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREADLE_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "treadle" / "kernels"
    (tmp_path / "treadle.toml").write_text('kernel_cache = "made/here"')
    assert cache_folder() == tmp_path / "made" / "here"
    monkeypatch.setenv("TREADLE_KERNEL_CACHE", str(tmp_path / "said"))
    assert cache_folder() == tmp_path / "said"
    monkeypatch.delenv("TREADLE_KERNEL_CACHE")
    (tmp_path / "treadle.toml").write_text("kernel_cache = 3")
    with pytest.raises(ArgumentError, match="kernel_cache: expected a path, got 3"):
        cache_folder()
