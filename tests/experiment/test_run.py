"""`run` takes handles and specs to results; importing it stays cheap."""

import subprocess
import sys
from pathlib import Path

import pytest

import treadle
from treadle import StepSpec, run, step
from treadle.errors import ArgumentError
from treadle.experiment import StepContext
from treadle.kernel import Cached, Done


@step
def number(n: int) -> int:
    return n


@step
def total(numbers: list[int], ctx: StepContext) -> int:
    Path(ctx.output_path, "total.txt").write_text(str(sum(numbers)))
    return sum(numbers)


def test_handles_and_specs_run_together(tmp_path: Path) -> None:
    handle = total([number(1), number(2)])
    spec = StepSpec("raw", lambda path: Path(path, "x").touch(), output_path_prefix=str(tmp_path))
    results = run(handle, spec, prefix=tmp_path)
    assert results[handle.id] == 3
    assert results[spec.id] == treadle.Artifact(spec.output_path)
    assert len(results) == 4


def test_a_second_run_is_served_and_force_is_not(tmp_path: Path) -> None:
    handle = total([number(1), number(2)])
    run(handle, prefix=tmp_path)
    assert isinstance(run(handle, prefix=tmp_path).outcomes[handle.id].outcome, Cached)
    forced = run(handle, prefix=tmp_path, force="total")
    assert isinstance(forced.outcomes[handle.id].outcome, Done)


def test_what_is_neither_handle_nor_spec_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"handles\[1\]: expected a handle"):
        run(number(1), number, prefix=tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", ["treadle", "treadle.fray", "treadle.artifacts", "treadle.execution"])
def test_importing_brings_no_heavy_package(module: str) -> None:
    """Every command pays for what is imported at the top."""
    heavy = {"numpy", "pandas", "pyarrow", "pydantic", "torch", "fsspec", "yaml", "rich"}
    code = f"import {module}, sys; print(*sorted({heavy!r} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == []


def test_the_names_of_the_package_are_there() -> None:
    assert sorted(treadle.__all__) == treadle.__all__
    assert all(getattr(treadle, name) is not None for name in treadle.__all__)
    assert set(treadle.__all__) <= set(dir(treadle))
    with pytest.raises(AttributeError, match="'treadle' has no attribute 'frob'"):
        treadle.frob  # noqa: B018
