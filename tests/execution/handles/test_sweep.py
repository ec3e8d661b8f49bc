"""Many handles at once: one for each item, or for each point of a grid."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from treadle.errors import ArgumentError
from treadle.execution import Runtime, lower, step
from treadle.execution.handles.sweep import Point, sweep


@step
def words(text: str) -> list[str]:
    return text.split()


@step
def train(data: Any, lr: float = 0.1, seed: int = 0, threads: Runtime[int] = 1) -> float:
    return lr * seed


def test_map_gives_one_handle_for_each_item() -> None:
    handles = train.map((words(each) for each in "ab"), lr=0.5)
    assert [each.id for each in handles] == [train(words(each), lr=0.5).id for each in "ab"]
    assert train.map([]) == ()


def test_a_sweep_has_a_handle_for_each_point_in_a_fixed_order() -> None:
    handles = sweep(train, {"seed": [1, 2], "lr": (0.1, 0.2)}, data=words("a"))
    assert [*map(str, handles)] == ["lr=0.1, seed=1", "lr=0.1, seed=2", "lr=0.2, seed=1", "lr=0.2, seed=2"]
    assert handles[Point(seed=2, lr=0.2)].id == train(words("a"), 0.2, 2).id
    assert lower(handles[Point(lr=0.1, seed=1)], "/s").dep_ids == (words("a").id,)


def test_a_grid_can_go_over_steps_and_lists() -> None:
    data = [words("a"), words("b")]
    handles = sweep(train, {"data": data, "lr": [0.1]})
    assert handles[Point(data=words("b"), lr=0.1)].id == train(words("b"), 0.1).id
    assert len(sweep(train, {"data": [[1], [2], [1]]})) == 2


def test_a_point_is_frozen_and_hashed_by_content() -> None:
    point = Point(lr=0.1, layers=[1, 2])
    assert (str(point), repr(point)) == ("layers=[1, 2], lr=0.1", "Point(layers=[1, 2], lr=0.1)")
    assert {point: 1}[Point(layers=[1, 2], lr=0.1)] == 1
    assert point != Point(lr=0.1, layers=[2, 1])
    assert Point(n=1) != Point(n=True)
    assert dict(point) == {"layers": [1, 2], "lr": 0.1}
    assert pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(TypeError):
        point["lr"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"lr": []}, "lr: expected one value or more, got none"),
        ({"lr": 0.1}, r"lr: expected several values, got 0.1: put it into a list"),
        ({"data": "ab"}, "data: expected several values, got 'ab'"),
        ({"seed": [1]}, "given in the grid and beside it: seed"),
        ({"data": [1], "x": [1]}, "step 'train': got an unexpected keyword argument 'x'"),
    ],
)
def test_a_wrong_grid_is_refused(grid: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sweep(train, grid, seed=3)
    with pytest.raises(ArgumentError, match="expected a step"):
        sweep(len, grid)  # type: ignore[arg-type]
