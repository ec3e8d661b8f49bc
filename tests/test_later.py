"""Packages whose names load when they are asked for: each name is there, and nothing loads before."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import treadle

_SOURCE = Path(treadle.__file__).parent
LATER = sorted(
    ".".join(("treadle", *file.parent.relative_to(_SOURCE).parts))
    for file in _SOURCE.rglob("__init__.py")
    if "later(__name__" in file.read_text()
)


@pytest.mark.parametrize("package", LATER)
def test_a_package_has_all_names_that_it_offers_and_lists_them(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is getattr(module, name)
    assert {*module.__all__, "__name__"} <= set(dir(module))


@pytest.mark.parametrize("package", LATER)
def test_a_name_that_is_not_there_is_told_with_its_package(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'frob'"):
        importlib.import_module(package).frob  # noqa: B018


def test_a_module_is_loaded_when_one_of_its_names_is_asked_for() -> None:
    told = _python(
        "import sys, treadle.storage as storage; before = 'treadle.storage.dataset' in sys.modules;"
        "storage.Dataset; print(before, 'treadle.storage.dataset' in sys.modules, 'Dataset' in vars(storage))"
    )
    assert told == "False True True"


def test_importing_the_packages_loads_none_of_their_modules_nor_tables() -> None:
    told = _python(
        f"import importlib, sys; [importlib.import_module(each) for each in {LATER!r}];"
        f"print(sorted(set(sys.modules) & {{'numpy', 'pyarrow', 'pydantic', 'yaml'}}))"
    )
    assert told == "[]"


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
