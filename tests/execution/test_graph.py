"""What is wrong with a graph is told before any effect."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from treadle.errors import ArgumentError, GraphError
from treadle.execution import StepRunner, StepSpec
from treadle.execution.graph import gather


def spec(name: str, *deps: StepSpec, fn: Any = print, **options: Any) -> StepSpec:
    return StepSpec(name, fn, deps, **{"output_path_prefix": "/nowhere", **options})


def test_everything_that_is_needed_is_in_the_graph_once() -> None:
    a = spec("a")
    left, right = spec("left", a), spec("right", spec("a"))
    graph = gather(each for each in (spec("end", left, right), left))
    assert [graph.steps[key].name for key in graph.order] == ["a", "left", "right", "end"]
    assert [graph.steps[key].name for key in graph.targets] == ["end", "left"]
    assert set(graph.dependents[a.id]) == {left.id, right.id}
    assert graph.with_descendants([left.id]) == {left.id, graph.targets[0]}


def test_cycles_are_refused_as_a_path() -> None:
    a = spec("a")
    b = spec("b", a)
    object.__setattr__(a, "deps", (b,))
    with pytest.raises(GraphError, match=f"cycle: {a.id} -> {b.id} -> {a.id}"):
        StepRunner().run([b])
    object.__setattr__(a, "deps", (a,))
    with pytest.raises(GraphError, match="depends on itself"):
        StepRunner().run([b])


def test_what_is_no_step_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"steps\[1\]: expected a StepSpec"):
        gather([spec("a"), "b"])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="expected several steps, got one"):
        gather(spec("a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("places", "message"),
    [(("x", "x"), "have the same place"), (("x", "x/y"), "lies inside"), (("x/y/z", "x"), "lies inside")],
)
def test_places_that_clash_are_refused(places: tuple[str, str], message: str) -> None:
    """The one would clear the other's folder, or be served its result."""
    steps = [spec(name, override_output_path=place) for name, place in zip("ab", places, strict=True)]
    with pytest.raises(GraphError, match=message):
        gather(steps)


def test_one_step_in_two_stores_is_refused() -> None:
    with pytest.raises(GraphError, match=r"is there twice, at /x/.* and at /y/"):
        gather([spec("a", output_path_prefix="/y"), spec("a", output_path_prefix="/x")])


class Scale:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def fill(self, path: str) -> int:
        return self.factor


@dataclass(frozen=True)
class Shift:
    offset: int

    def fill(self, path: str) -> int:
        return self.offset


def closing_over(value: Any) -> Any:
    return lambda path: value


def by_default(value: Any) -> Any:
    return lambda path, value=value: value


def bound(value: Any) -> Any:
    return partial(lambda value, path: value, value)


def by_keyword(value: Any) -> Any:
    def fn(path: str, *, value: Any = value) -> Any:
        return value

    return fn


@pytest.mark.parametrize("make", [closing_over, by_default, by_keyword, bound])
def test_one_identity_over_different_values_is_refused_and_over_equal_ones_is_not(make: Any) -> None:
    """Two tasks with the same source and different captured values must never share a result."""
    with pytest.raises(GraphError, match="is there twice, with different functions"):
        gather([spec("a", fn=make(2)), spec("a", fn=make(3))])
    for value in (2, [1, {"k": "v"}], object, len):
        assert len(gather([spec("a", fn=make(value)), spec("a", fn=make(value))]).steps) == 1


def test_partials_and_methods_are_compared_by_what_they_are_bound_to() -> None:
    fill = Scale(2).fill
    assert len(gather([spec("a", fn=fill), spec("a", fn=fill)]).steps) == 1
    with pytest.raises(GraphError, match="different functions"):
        gather([spec("a", fn=fill), spec("a", fn=Scale(3).fill)])
    with pytest.raises(GraphError, match="different functions"):
        gather([spec("a", fn=partial(print, 2)), spec("a", fn=partial(print, 3))])
    assert len(gather([spec("a", fn=partial(print, 2)), spec("a", fn=partial(print, 2))]).steps) == 1


def test_a_captured_variable_that_is_not_set_yet_is_no_crash() -> None:
    def make() -> list[StepSpec]:
        steps = [spec("a", fn=lambda path: later), spec("a", fn=lambda path: [later])]
        with pytest.raises(GraphError, match="different functions"):
            gather(steps)
        later: int = 1
        return steps

    assert len(make()) == 2


def defined(source: str) -> Any:
    space: dict[str, Any] = {"__name__": "cell"}
    exec(source, space)
    return space["f"]


def test_a_function_that_is_defined_again_is_the_same() -> None:
    """A notebook's cell is edited above the function and run again; both functions meet in one run."""
    once = defined("def f(path):\n    return 1\n")
    again = defined("\n# a comment\ndef f(path):\n    return 1\n")
    other = defined("def f(path):\n    return 1.0\n")
    assert gather([spec("a", fn=once), spec("a", fn=again)]).order == (spec("a", fn=once).id,)
    with pytest.raises(GraphError, match="different functions"):
        gather([spec("a", fn=once), spec("a", fn=other)])


def test_a_method_of_an_equal_object_is_the_same() -> None:
    steps = [spec("a", fn=Shift(offset).fill) for offset in (2, 2, 3)]
    assert len(gather(steps[:2]).order) == 1
    with pytest.raises(GraphError, match="different functions"):
        gather(steps)
