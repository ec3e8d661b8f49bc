"""Handles: calling a step builds a lazy node, and lowering gives its identity."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treadle import Artifact, Runtime, StepRunner, StepSpec, lower, run, step
from treadle.errors import ArgumentError, IdentityError, StepsFailedError
from treadle.execution import Handle, StepContext

if TYPE_CHECKING:
    from decimal import Decimal


@step
def words(text: str) -> list[str]:
    return text.split()


@step
def count(lines: Any, minimum: int = 1, threads: Runtime[int] = 1) -> int:
    assert threads > 0
    return len([each for each in lines if len(each) >= minimum])


@step(name="files/letter")
def letter(ctx: StepContext, content: str) -> None:
    Path(ctx.output_path, "letter.txt").write_text(content)


@step
def read(letters: Artifact) -> str:
    return Path(letters / "letter.txt").read_text()


@step
def tell(what: str, ctx: StepContext) -> tuple[str, str, str, str, str]:
    return what, ctx.output_path, ctx.name, ctx.fingerprint, ctx.prefix


@dataclass
class Parts:
    label: str
    inner: Any


@step
def collect(*parts: Any, **named: Any) -> list[Any]:
    return [parts, dict(sorted(named.items()))]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_PREFIX", str(tmp_path))
    return tmp_path


def value_of(handle: Handle[Any]) -> Any:
    spec = lower(handle)
    return StepRunner().run([spec])[spec.id]


def test_calling_a_step_runs_nothing() -> None:
    @step
    def boom() -> None:
        raise AssertionError("it ran")

    assert isinstance(boom(), Handle)
    assert isinstance(lower(boom()), StepSpec)


def test_values_flow_from_step_to_step() -> None:
    assert value_of(count(words("a bb ccc"), minimum=2)) == 2


def test_a_dependency_without_a_value_is_its_artifact() -> None:
    assert value_of(read(letter("dear"))) == "dear"


def test_the_context_is_filled_in(store: Path) -> None:
    handle = tell("x")
    spec = lower(handle)
    assert value_of(handle) == ("x", spec.output_path, "tell", spec.hash_id, str(store))


def test_handles_inside_containers_and_dataclasses_are_dependencies() -> None:
    a, b, c, d = (words(each) for each in "abcd")
    handle = collect([a, {"k": (b, 1)}], Parts("p", [c]), last=d)
    assert set(lower(handle).dep_ids) == {a.id, b.id, c.id, d.id}
    seen, named = value_of(collect([a, {"k": (b, 1)}], last=d))
    assert seen == ([["a"], {"k": (["b"], 1)}],)
    assert named == {"last": ["d"]}


def test_a_dataclass_keeps_its_type_when_its_handles_are_replaced() -> None:
    @step
    def label(parts: Parts) -> list[Any]:
        return [type(parts).__name__, parts.label, parts.inner]

    assert value_of(label(Parts("p", [words("c")]))) == ["Parts", "p", [["c"]]]


def test_runtime_arguments_bear_no_identity_and_others_do() -> None:
    base = lower(count(["a"])).id
    assert lower(count(["a"], threads=7)).id == base
    assert lower(count(["a"], 1)).id == base, "a default that is spelled out is the same call"
    assert lower(count(["a"], 2)).id != base
    assert lower(count(words("a"))).id != base


def test_which_dependency_goes_where_is_part_of_the_identity() -> None:
    a, b = words("a"), words("b")
    assert lower(collect(a, b)).id != lower(collect(b, a)).id
    assert lower(collect(x=a, y=b)).id == lower(collect(y=b, x=a)).id


def test_the_function_is_part_of_the_identity() -> None:
    @step
    def other(text: str) -> list[str]:
        return [text]

    assert lower(words("a").named("n")).id != lower(other("a").named("n")).id


def test_named_gives_another_step() -> None:
    handle = words("a b")
    renamed = handle.named("partition")
    assert renamed.id.startswith("partition-")
    assert handle.id.startswith("words-")
    assert letter("x").id.startswith("files/letter-")
    with pytest.raises(ArgumentError, match="step name"):
        handle.named("../x")


def test_two_closures_over_different_values_are_different_steps() -> None:
    """A cache that looks at the source alone serves the one for the other."""

    def make(k: int) -> Handle[int]:
        @step
        def give() -> int:
            return k

        return give()

    two, three = lower(make(2)), lower(make(3))
    results = StepRunner().run([two, three, lower(make(2))])
    assert (results[two.id], results[three.id]) == (2, 3)


def test_a_captured_function_is_refused_by_name() -> None:
    def helper() -> int:
        return 1

    @step
    def use() -> int:
        return helper()

    with pytest.raises(IdentityError, match=r"step 'use': captured variable helper: the callable"):
        use()


def test_arguments_without_identity_are_refused_at_the_call() -> None:
    with pytest.raises(IdentityError, match=r"step 'count': argument lines\[0\]\['f'\]: the callable"):
        count([{"f": len}])
    assert count(["a"], threads=Unhashable())  # type: ignore[truthy-bool]


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


def test_a_handle_is_handed_over_as_an_ordinary_argument_only() -> None:
    handle = words("a")

    @step
    def use() -> Any:
        return handle

    with pytest.raises(ArgumentError, match="Runtime argument threads: expected a value, got Handle"):
        count([], threads=handle)
    with pytest.raises(ArgumentError, match="captured variable handle: expected a value, got Handle"):
        use()


def test_an_argument_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(
        IdentityError, match="step 'count': an argument or a captured variable contains itself"
    ):
        count(value)


def test_a_captured_variable_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    @step
    def use() -> Any:
        return value

    with pytest.raises(IdentityError, match="step 'use': an argument or a captured variable contains itself"):
        use()


def test_a_step_is_made_of_a_function() -> None:
    with pytest.raises(ArgumentError, match=r"got 'partition'; to name it: @step\(name="):
        step("partition")  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="step name"):
        step(name="")(words.function)


@pytest.mark.parametrize("call", [lambda: words(), lambda: words("a", "b"), lambda: tell("a", ctx=1)])
def test_wrong_arguments_name_the_step(call: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"step '(words|tell)': "):
        call()


def test_changing_an_argument_after_the_call_changes_nothing() -> None:
    lines = ["a"]
    handle = count(lines)
    lines.append("b")
    assert value_of(handle) == 1


def test_annotations_that_only_a_type_checker_sees_do_no_harm() -> None:
    @step
    def half(amount: Decimal | int, ctx: StepContext, threads: Runtime[int] = 1) -> str:
        return ctx.name

    assert lower(half(1, threads=2)).id == lower(half(1)).id
    assert value_of(half(1)) == "half"


def test_a_thousand_deep_chain_and_a_ladder_of_diamonds_are_ordinary() -> None:
    """Recursion would end at depth, and lowering a diamond twice at each rung would never end."""
    chain: Handle[Any] = words("a")
    handles = [chain, *(chain := count(chain).named(f"c{place}") for place in range(1000))]
    ladder: Handle[Any] = words("a")
    for place in range(25):
        ladder = collect(ladder, ladder).named(f"rung{place}")
    clock = time.perf_counter()
    assert len({lower(each).id for each in handles}) == 1001
    lower(ladder)
    assert time.perf_counter() - clock < 5


def test_terminals_lowered_apart_share_their_steps() -> None:
    shared = words("a")
    one, other = lower(count(shared)), lower(collect(shared))
    assert one.deps[0] == other.deps[0]


def test_a_store_can_be_chosen_when_lowering(tmp_path: Path) -> None:
    handle = words("a")
    here, there = lower(handle), lower(handle, tmp_path / "other")
    assert here.id == there.id
    assert there.output_path.startswith(f"{tmp_path}/other/words/")
    assert lower(handle) is here


def test_a_captured_variable_that_changes_before_the_step_runs_is_refused(tmp_path: Path) -> None:
    """A step in a loop sees the last turn of the loop: kept under the identity of the first, it is a lie."""

    def build() -> list[Handle[int]]:
        handles = []
        for turn in range(3):

            @step
            def current() -> int:
                return turn  # noqa: B023 - the mistake that is meant

            handles.append(current())
        return handles

    with pytest.raises(
        StepsFailedError, match=r"captured variable turn was 0 when .* and is 2 now"
    ) as caught:
        run(*build(), prefix=tmp_path)
    assert [*caught.value.results.values()] == [2]


def test_a_captured_variable_without_a_value_is_refused_by_name() -> None:
    @step
    def early() -> int:
        return later

    with pytest.raises(IdentityError, match="step 'early': later: the captured variable has no value yet"):
        early()
    later = 1


def test_lowering_looks_at_each_edge_a_few_times_only(tmp_path: Path) -> None:
    """Every step needs all before it: whoever looks again for each edge needs hours for a wide graph."""
    handles: list[Handle[Any]] = []
    for _ in range(150):
        handles.append(count(list(handles)))
    spec = lower(handles[-1], tmp_path)
    assert len(spec.deps) == 149
