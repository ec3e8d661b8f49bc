"""What is wrong is told before anything runs: what, where, what was expected, what came, and what to do."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from treadle import run, step
from treadle.artifacts import open_store
from treadle.errors import ArgumentError, GraphError, IdentityError, StepsFailedError, UsageError
from treadle.execution import StepRunner, StepSpec

DAY = "2026.01.01"


def noop(path: str) -> None:
    """Do nothing."""


def spec(store: Path, name: str, *deps: StepSpec, **options: Any) -> StepSpec:
    return StepSpec(name, options.pop("fn", noop), deps, output_path_prefix=str(store), **options)


def refused(steps: list[StepSpec], store: Path, kind: type[UsageError]) -> str:
    """The message, when nothing at all has been done."""
    with pytest.raises(kind) as caught:
        StepRunner().run(steps)
    assert caught.value.exit_code == 2
    assert not list(store.iterdir()), "nothing was made, not even a ledger"
    return str(caught.value)


def test_a_cycle(tmp_path: Path) -> None:
    a = spec(tmp_path, "a")
    b = spec(tmp_path, "b", a)
    object.__setattr__(a, "deps", (b,))
    assert refused([b], tmp_path, GraphError) == f"cycle: {a.id} -> {b.id} -> {a.id}"


def test_a_step_that_depends_on_itself(tmp_path: Path) -> None:
    a = spec(tmp_path, "a")
    object.__setattr__(a, "deps", (a,))
    assert refused([a], tmp_path, GraphError) == f"'{a.id}' depends on itself"


@pytest.mark.parametrize(
    ("dep", "told"), [("tokenize", "'tokenize'"), (None, "None"), (noop, "<function noop at")]
)
def test_a_dependency_that_is_no_step(dep: Any, told: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        StepSpec("a", noop, [StepSpec("b", noop), dep])
    message = str(caught.value)
    assert message.startswith("step 'a': deps[1]: expected a StepSpec (lower() makes one), got ")
    assert told in message


def test_a_generator_of_dependencies_that_another_step_has_used_up() -> None:
    """The second step would have no dependencies, and run before what it reads is there."""
    sources = (StepSpec(f"s{place}", noop) for place in range(3))
    assert len(StepSpec("a", noop, sources).deps) == 3  # type: ignore[arg-type]
    with pytest.raises(ArgumentError) as caught:
        StepSpec("b", noop, sources)  # type: ignore[arg-type]
    assert str(caught.value).startswith(
        "step 'b': deps: expected several steps, got a generator that is used up"
    )


@pytest.mark.parametrize("name", ["x" * 256, "a/" + "y" * 300])
def test_a_name_that_no_folder_can_have_is_refused_before_the_work(name: str, tmp_path: Path) -> None:
    """File systems take 255 bytes. It was found out by the commit, when the work was done, and the work
    was lost.
    """
    with pytest.raises(ArgumentError, match="name"):
        StepSpec(name, noop)


@pytest.mark.parametrize("name", [".treadle", ".treadle/work", ".treadle/ledger.db", ".treadle/logs/x"])
def test_a_name_inside_the_stores_own_folder_is_refused(name: str) -> None:
    """There the output of a step lies among the working folders and beside the ledger."""
    with pytest.raises(ArgumentError, match="name"):
        StepSpec(name, noop)


def test_one_id_with_two_recipes(tmp_path: Path) -> None:
    one = spec(tmp_path, "a", version=DAY, hash_attrs={"lr": 0.1})
    two = spec(tmp_path, "a", version=DAY, hash_attrs={"lr": 0.2})
    message = refused([one, spec(tmp_path, "b", two)], tmp_path, GraphError)
    assert message.startswith(f"step a@{DAY} is there twice, with different recipes: ")
    assert re.search("lr.*0.1.*0.2|lr.*0.2.*0.1", message)
    assert message.endswith("; give one of them another version or another name")


def test_one_id_with_other_dependencies(tmp_path: Path) -> None:
    one = spec(tmp_path, "a", spec(tmp_path, "x"), version=DAY)
    two = spec(tmp_path, "a", spec(tmp_path, "y"), version=DAY)
    message = refused([one, two], tmp_path, GraphError)
    assert f"step a@{DAY} is there twice, with different recipes: " in message
    assert "x" in message
    assert "y" in message


@pytest.mark.parametrize("limit", [0, -1, 1.5, "2", True, None, math.inf])
def test_a_limit_that_is_none(limit: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        StepRunner(limit)
    assert str(caught.value) == f"max_concurrent: expected a whole number of at least 1, got {limit!r}"


@pytest.mark.parametrize("fn", [None, "main", 3])
def test_a_step_without_a_function(fn: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        StepSpec("a", fn)
    assert str(caught.value) == f"step 'a': fn: expected a function of the output path, got {fn!r}"


async def later(path: str) -> None:
    """Run nothing when it is called."""


def test_a_function_whose_call_runs_nothing() -> None:
    with pytest.raises(
        ArgumentError, match=r"step 'a': fn: expected an ordinary function.*asyncio\.run in it"
    ):
        StepSpec("a", later)


class Model:
    """What nobody can keep as JSON."""


@pytest.mark.parametrize(
    ("value", "place", "kind"),
    [
        (Model(), "value", f"{__name__}.Model"),
        ({"a": [1, {2, 3}]}, "value['a'][1]", "builtins.set"),
        ((1, b"x"), "value[1]", "builtins.bytes"),
        (lambda: 1, "value", "builtins.function"),
        ({b"x": 2}, "value key b'x'", "builtins.bytes"),
    ],
)
def test_a_result_that_cannot_be_kept(tmp_path: Path, value: Any, place: str, kind: str) -> None:
    """It fails with the name of the type, leaves no record, and what needs it does not run."""

    def fn(path: str) -> Any:
        Path(path, "x.txt").touch()
        return value

    bad = spec(tmp_path, "bad", fn=fn)
    after = spec(tmp_path, "after", bad)
    with pytest.raises(StepsFailedError) as caught:
        StepRunner().run([after])
    expected = (
        f"failed {bad.id}: ArtifactError: step {bad.id} returned what cannot be kept: {place}: a value "
    )
    assert expected + f"of type {kind} cannot be kept. " in str(caught.value)
    assert "write anything else into a file of the output folder" in str(caught.value)
    assert f"skipped {after.id}: because of {bad.id}" in str(caught.value)
    assert open_store(str(tmp_path)).record(bad.output_path) is None
    assert not Path(bad.output_path).exists()


def test_a_result_that_contains_itself(tmp_path: Path) -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(StepsFailedError, match="value: nested too deeply, or it contains itself"):
        StepRunner().run([spec(tmp_path, "a", fn=lambda path: ring)])


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"fn": lambda: 1}, ["step 'a': hash_attrs", "'fn'", "lambda"]),
        ({"model": {"inner": [object()]}}, ["step 'a': hash_attrs", "'model'", "'inner'", "[0]", "object"]),
        ({"mask": {1, "a"}}, None),
        ({"lr": math.nan}, ["step 'a': hash_attrs", "'lr'", "NaN"]),
        ({"lr": [1.0, -math.inf]}, None),
        ({1: 2}, None),
    ],
)
def test_a_config_without_a_canonical_form(config: Any, told: list[str] | None) -> None:
    """Told with the path to what is wrong, or else given one identity, however often it is asked for."""
    if told is None:
        assert StepSpec("a", noop, hash_attrs=config).id == StepSpec("a", noop, hash_attrs=dict(config)).id
        return
    with pytest.raises(IdentityError) as caught:
        StepSpec("a", noop, hash_attrs=config)
    for part in told:
        assert part in str(caught.value)


@step
def train(config: object) -> None:
    """Do nothing."""


def test_an_argument_without_a_canonical_form_names_the_step_and_the_argument() -> None:
    with pytest.raises(IdentityError) as caught:
        train({"fn": lambda: 1})
    assert "train" in str(caught.value)
    assert "config" in str(caught.value)
    assert "'fn'" in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"versions": "dev"},
        {"select": [3]},
        {"select": 3},
        {"force": [noop]},
        {"prefix": 3},
        {"prefix": "a\0b"},
        {"timeout": 10**400},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_another_type(options: dict[str, Any], tmp_path: Path) -> None:
    @step
    def one() -> int:
        return 1

    with pytest.raises(ArgumentError, match=next(iter(options))):
        if "timeout" in options:
            one().with_options(**options)
        run(one(), **{"prefix": tmp_path, **options})
    assert not list(tmp_path.iterdir())
