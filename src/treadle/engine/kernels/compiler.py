"""Turns the C++ sources beside this module into a shared library for the processor that this runs on."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.errors import EngineError

_SOURCES = Path(__file__).parent
_MAIN = "llama.cpp"
# Not -ffast-math: scores that are not numbers must stay so until the sampler sees them.
_OPTIONS = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-fopenmp", "-Wno-psabi")
_PATIENCE = 300.0
_RUNTIME = re.compile(r"\s(/\S*/lib(?:gomp|omp|iomp5)\b\S*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler, and the OpenMP runtime that this process has loaded, where there is one.

    Two runtimes in one process would each keep threads for every core, which then wait for each other.
    """

    path: str
    version: str
    runtime: str

    def key(self) -> str:
        """What a compiled library depends on: sources, compiler, options, runtime and processor."""
        digest = hashlib.sha256()
        for part in (self.version, self.runtime, *_OPTIONS, *_processor(), *_texts()):
            digest.update(part.encode() + b"\0")
        return digest.hexdigest()[:32]

    def compile(self, target: Path) -> None:
        """Write the library to `target`.

        Raises:
            EngineError: the compiler fails, with the end of what it says.
        """
        compiled = target.with_suffix(".o")
        self._run(*_OPTIONS, "-c", str(_SOURCES / _MAIN), "-o", str(compiled))
        self._run("-shared", str(compiled), self.runtime or "-fopenmp", "-o", str(target))
        compiled.unlink()

    def _run(self, *arguments: str) -> None:
        found = _run([self.path, *arguments])
        if found.returncode:
            said = "\n".join(found.stderr.strip().splitlines()[-8:])
            raise EngineError(f"{self.path} failed with exit code {found.returncode}: {said}")


def find_compiler() -> Compiler:
    """The compiler that `CXX` names, else `g++`, else `c++`.

    Raises:
        EngineError: there is none, or it cannot say its version.
    """
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++"]
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        raise EngineError(f"no C++ compiler found (looked for {' and '.join(names)}): install g++")
    version = _run([path, "--version"])
    if version.returncode:
        raise EngineError(f"{path} --version failed: {version.stderr.strip()}")
    return Compiler(path, f"{path} {version.stdout}", _loaded_runtime())


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the compiler that this machine's user chose
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{command[0]} cannot be run: {error}") from error


def _texts() -> Iterator[str]:
    for file in sorted(_SOURCES.iterdir()):
        if file.suffix in (".cpp", ".h"):
            yield file.name
            yield file.read_text(encoding="utf-8")


def _processor() -> Iterator[str]:
    """What -march=native would look at."""
    yield platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        names = ("model name", "flags", "Features", "cpu family", "model\t")
        yield from sorted({line for line in lines if line.startswith(names)})


def _loaded_runtime() -> str:
    maps = Path("/proc/self/maps")
    found = _RUNTIME.findall(maps.read_text(encoding="utf-8")) if maps.is_file() else []
    return min(found, key=lambda path: "/torch/" not in path, default="")
