"""What changed above a step that is asked for: the answer must be the new one, or the run must say why
not.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from treadle import plan, run, step
from treadle.errors import DriftError
from treadle.execution import StepDrifted, StepState
from treadle.testing import EventLog


@step(version="2026.02.03")
def corpus(size: int) -> int:
    return size


@step
def model(data: int) -> int:
    return data * 2


def test_another_recipe_above_under_a_fixed_version_is_told(tmp_path: Path) -> None:
    """A dependent knows `corpus` by its version alone, so only a look at `corpus` can tell that it is
    another. Without that, `run(model(corpus(42)))` gives the number of `corpus(21)`, under every
    policy, in silence.
    """
    run(model(corpus(21)), prefix=tmp_path)
    log = EventLog()
    run(model(corpus(42)), prefix=tmp_path, reporter=log)
    assert [event.name for event in log.of(StepDrifted)] == ["corpus"]


def test_another_recipe_above_is_refused_where_drift_is_an_error(tmp_path: Path) -> None:
    """Who writes `on_drift="error"` wants no number that was made from something else."""
    run(model(corpus(21)), prefix=tmp_path)
    with pytest.raises(DriftError, match="corpus"):
        run(model(corpus(42)), prefix=tmp_path, on_drift="error")


def test_another_recipe_above_is_built_where_drift_is_rebuilt(tmp_path: Path) -> None:
    """Who writes `on_drift="rebuild"` wants the number that the arguments give now."""
    run(model(corpus(21)), prefix=tmp_path)
    new = model(corpus(42))
    assert run(new, prefix=tmp_path, on_drift="rebuild")[new.id] == 84


def test_the_plan_tells_of_another_recipe_above(tmp_path: Path) -> None:
    """`plan` says what `run` would do; a step that is served from another recipe is not simply cached."""
    run(model(corpus(21)), prefix=tmp_path)
    states = {each.name: each.state for each in plan(model(corpus(42)), prefix=tmp_path).steps}
    assert states.get("corpus") is StepState.DRIFTED


_CODE = "from treadle import step\n@step\ndef first(x: int) -> int:\n    return x + {added}\n"


def _module(folder: Path, added: int) -> ModuleType:
    path = folder / f"{added}" / "recipes_of_a_user.py"
    path.parent.mkdir()
    path.write_text(_CODE.format(added=added))
    spec = importlib.util.spec_from_file_location("recipes_of_a_user", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_other_code_above_is_told(tmp_path: Path) -> None:
    """Most runs ask for the last step alone. Code that changed further up must not go unnoticed there."""
    old, new = _module(tmp_path, 1).first, _module(tmp_path, 2).first
    run(model(old(0)), prefix=tmp_path / "store")
    log = EventLog()
    run(model(new(0)), prefix=tmp_path / "store", reporter=log)
    assert [event.name for event in log.of(StepDrifted)] == ["first"]


def test_other_code_above_is_built_where_drift_is_rebuilt(tmp_path: Path) -> None:
    """The policy holds for the experiment, not for the one step that happens to be named."""
    old, new = _module(tmp_path, 1).first, _module(tmp_path, 2).first
    run(model(old(0)), prefix=tmp_path / "store")
    asked = model(new(0))
    assert run(asked, prefix=tmp_path / "store", on_drift="rebuild")[asked.id] == 4


def test_code_without_a_source_file_drifts_too(tmp_path: Path) -> None:
    """`python - <<EOF`, `python -c` and `exec` have no source to read, and change as code in files does.

    Without a hash of anything, an edited script gives the old number, under every policy, in silence.
    """
    script = (
        "from treadle import run, step\n@step\ndef f(x: int) -> int:\n    return x * {factor}\n"
        f"h = f(10)\nprint(run(h, prefix={str(tmp_path)!r}, on_drift='rebuild')[h.id])\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-"],
            input=script.format(factor=factor),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for factor in (1, 2)
    ]
    assert told == ["10", "20"]
