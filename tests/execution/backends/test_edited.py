"""The file of a step is edited while a run is on: a worker that starts later imports what it says by then."""

import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from treadle import run
from treadle.artifacts import open_store
from treadle.errors import StepError, StepsFailedError
from treadle.fray.processes import ProcessClient

pytestmark = pytest.mark.timeout(60)

TEXT = """
import os
from pathlib import Path

from treadle import Retry, Runtime, step

FILE = Path(__file__)


@step
def edit(text: str) -> str:
    FILE.write_text(text)
    return "old"


@step(retry=Retry(attempts=3, delay=0.01))
def after(before: str, kill: bool) -> str:
    \"""The first worker has the old file; only one that starts when that is dead reads the new one.\"""
    if kill and not FILE.with_suffix(".killed").exists():
        FILE.with_suffix(".killed").touch()
        os._exit(9)
    return before + " and old"
"""
NUMBERS = itertools.count()

Write = Callable[[str], ModuleType]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module, and imports it under a name that no other test uses."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # two files of one second and one size look the same
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    def write(text: str) -> ModuleType:
        name = f"edited_{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    return write


def value(module: ModuleType, text: str, store: Path, *, kill: bool) -> str:
    handle = module.after(module.edit(text), kill)
    with ProcessClient(1) as client:
        result: str = run(handle, prefix=store, fray_client=client)[handle.id]
    return result


def failure(module: ModuleType, text: str, store: Path) -> Exception:
    with pytest.raises(StepsFailedError) as caught:
        value(module, text, store, kill=True)
    [error] = caught.value.exceptions
    [built] = open_store(str(store)).ledger.places()
    assert open_store(str(store)).head(built).name == "edit"
    return error


def test_a_step_whose_code_has_changed_is_refused(written: Write, tmp_path: Path) -> None:
    """Else what the new code gives is kept under the identity of the old one."""
    module = written(TEXT)
    error = failure(module, TEXT.replace("and old", "and new"), tmp_path / "store")
    assert isinstance(error, StepError)
    assert f"its code has changed since this run began: {module.__file__}; run again" in str(error)
    attempts = open_store(str(tmp_path / "store")).ledger.attempts()
    assert [each.outcome for each in attempts] == ["failed", "lost", "done"], "it is not tried again"


def test_a_file_that_cannot_be_read_any_more_is_named_with_the_line(written: Write, tmp_path: Path) -> None:
    module = written(TEXT)
    error = failure(module, f"x = 1\nprint(\n{TEXT}", tmp_path / "store")
    assert isinstance(error, StepError)
    assert f"{module.__file__}, line 2: '(' was never closed" in str(error)


@pytest.mark.parametrize("text", [TEXT.replace("and old", "and new"), "print("])
def test_a_worker_that_has_the_former_code_goes_on_with_it(written: Write, tmp_path: Path, text: str) -> None:
    """What counts is what runs, not what its file says by now."""
    assert value(written(TEXT), text, tmp_path / "store", kill=False) == "old and old"


def test_another_layout_is_no_other_code(written: Write, tmp_path: Path) -> None:
    text = f"# a word\n{TEXT}".replace('"""The first', '"""Always the first')
    assert value(written(TEXT), text, tmp_path / "store", kill=True) == "old and old"
