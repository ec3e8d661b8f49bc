"""A path that a step returns is good afterwards, wherever in the value it stands and wherever the store
lies.
"""

import shutil
from pathlib import Path

import numpy as np

from treadle import Artifact, StepContext, run, step


@step
def sizes(ctx: StepContext) -> dict[str, int]:
    path = Path(ctx.output_path, "part.txt")
    path.write_text("12345")
    return {str(path): 5}


def test_paths_as_keys_are_adjusted(tmp_path: Path) -> None:
    """A table of files by their paths is a common thing to return; the working folder is gone when it is
    read.
    """
    handle = sizes()
    assert [Path(key).read_text() for key in run(handle, prefix=tmp_path)[handle.id]] == ["12345"]


@step
def resolved(ctx: StepContext) -> Path:
    path = Path(ctx.output_path, "part.txt").resolve()
    path.write_text("12345")
    return path


def test_resolved_paths_are_adjusted(tmp_path: Path) -> None:
    """`/tmp` and home folders are links on many machines, and many libraries resolve the paths they give
    back.
    """
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    handle = resolved()
    assert run(handle, prefix=tmp_path / "link")[handle.id].read_text() == "12345"


@step
def made(ctx: StepContext) -> Artifact:
    Path(ctx.output_path, "f").write_text("content")
    return Artifact(ctx.output_path)


@step
def chosen(one: Artifact) -> Artifact:
    return one


def test_a_path_of_a_dependency_moves_with_the_store(tmp_path: Path) -> None:
    """A step that chooses among artifacts returns one that is another's; a store may be moved as a whole."""
    handle = chosen(made())
    run(handle, prefix=tmp_path / "before")
    shutil.move(tmp_path / "before", tmp_path / "after")
    path = run(handle, prefix=tmp_path / "after")[handle.id] / "f"
    assert Path(path).read_text() == "content"


@step
def numbers() -> object:
    return {"loss": np.float64(0.5), "rows": np.int64(3)}


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    """The docs promise that numbers are kept. `np.float64` is even a float, and is what most losses are: to
    refuse it when the training is over throws the training away."""
    handle = numbers()
    assert run(handle, prefix=tmp_path)[handle.id] == {"loss": 0.5, "rows": 3}


@step
def by_number() -> dict[int, str]:
    return {1: "one"}


def test_dicts_with_numbers_as_keys_are_dicts(tmp_path: Path) -> None:
    """The docs promise that dicts are kept, and what is refused is refused when the work is done and lost."""
    handle = by_number()
    assert run(handle, prefix=tmp_path)[handle.id] == {1: "one"}
