"""The selection language: names, patterns, ancestors, descendants, unions and intersections."""

from typing import Any

import pytest

from treadle.errors import ArgumentError, UnknownNameError
from treadle.execution import StepRunner, StepSpec
from treadle.execution.graph import StepGraph, gather
from treadle.execution.select import select


def spec(name: str, *deps: StepSpec, **attributes: int) -> StepSpec:
    return StepSpec(name, print, deps, attributes, output_path_prefix="/nowhere")


def diamond() -> StepGraph:
    """read -> (tok/a, tok/b) -> train -> report; and other, alone."""
    read = spec("read")
    train = spec("train", spec("tok/a", read), spec("tok/b", read))
    return gather([spec("report", train), spec("other")])


def chosen(graph: StepGraph, *expressions: str, **sets: set[str]) -> str:
    found = select(graph, expressions, **{word: graph.find(names) for word, names in sets.items()})
    return " ".join(sorted(graph.steps[key].name for key in found))


@pytest.mark.parametrize(
    ("expressions", "names"),
    [
        (["train"], "train"),
        (["tok/*"], "tok/a tok/b"),
        (["tok/[b]"], "tok/b"),
        (["+train"], "read tok/a tok/b train"),
        (["tok/a+"], "report tok/a train"),
        (["+tok/a+"], "read report tok/a train"),
        (["other", "report"], "other report"),
        (["+train,tok/a+"], "tok/a train"),
        (["+train , tok/*, read+", "other"], "other tok/a tok/b"),
        (["other,train"], ""),
        (["failed"], "tok/a"),
        (["failed+,changed+"], "report train"),
        (["*"], "other read report tok/a tok/b train"),
        ([], ""),
    ],
)
def test_expressions(expressions: list[str], names: str) -> None:
    assert chosen(diamond(), *expressions, failed={"tok/a"}, changed={"train"}) == names


def test_an_id_means_its_step_and_a_name_all_that_have_it() -> None:
    first, second = spec("a", x=1), spec("a", x=2)
    graph = gather([first, second])
    assert select(graph, [first.id]) == {first.id}
    assert select(graph, ["a"]) == {first.id, second.id}
    assert select(graph, [f"{first.id[:-1]}?"]) == {first.id}


def test_a_step_called_failed_wins_over_the_word() -> None:
    assert chosen(gather([spec("failed"), spec("b")]), "failed", failed={"b"}) == "failed"


def test_ids_of_other_graphs_are_left_out() -> None:
    assert select(diamond(), ["failed"], failed={"gone-000"}) == set()


@pytest.mark.parametrize("name", ["trian", "tok/c*"])
def test_an_unknown_name_lists_the_known(name: str) -> None:
    with pytest.raises(UnknownNameError, match="known: other, read, report, tok/a, tok/b, train") as caught:
        select(diamond(), ["read", name])
    assert caught.value.name == name


@pytest.mark.parametrize("expression", ["", "+", "++a", "a++", "a,", "a+b", " "])
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(ArgumentError, match="expected NAME, "):
        select(diamond(), [expression])


def test_one_string_is_refused() -> None:
    """It would be taken for its letters."""
    with pytest.raises(ArgumentError, match="expected several expressions"):
        select(diamond(), "read")


def test_depth_is_no_limit() -> None:
    last = spec("s0")
    for i in range(1, 3000):
        last = spec(f"s{i}", last)
    graph = gather([last])
    assert len(select(graph, ["+s2999"])) == len(select(graph, ["s0+"])) == 3000


def test_a_selection_bounds_what_is_forced(toy: Any) -> None:
    """ "Only these steps and what they need": a forced step that is none of them is a misunderstanding."""
    a = toy.step("a")
    b, c = toy.step("b", a), toy.step("c", a)
    StepRunner().run([b, c])
    with pytest.raises(ArgumentError, match=f"force: .* got {c.id}: select it as well"):
        StepRunner().run([b, c], select=["b"], force=["c"])
    assert toy.ran_again([b, c], select=["b"], force=["a"]) == ["a", "b"]
    assert toy.ran_again([b, c], select="c") == ["c"]
