"""Equal fingerprints must mean equal work: what a call is made of is in its identity, or is refused."""

import functools
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from pydantic import BaseModel, PrivateAttr

from treadle import ArtifactStep, run, step
from treadle.errors import IdentityError, StepsFailedError


@dataclass(frozen=True)
class Model:
    factor: int

    def predict(self, x: int) -> int:
        return self.factor * x


def scaled(factor: int, x: int) -> int:
    return factor * x


def test_a_bound_method_stands_by_its_object_too(tmp_path: Path) -> None:
    """Two models give two predictions; with one fingerprint, the second gets the number of the first."""
    two, three = step(Model(2).predict)(5), step(Model(3).predict)(5)
    assert run(two, three, prefix=tmp_path)[two.id] == 10
    assert run(two, three, prefix=tmp_path)[three.id] == 15


def test_a_named_partial_stands_by_what_it_binds(tmp_path: Path) -> None:
    """`functools.update_wrapper` is how a partial gets a name; what it binds is part of the call."""
    made = []
    for factor in (2, 3):
        function: Any = functools.update_wrapper(functools.partial(scaled, factor), scaled)
        del function.__wrapped__  # which would give the signature of `scaled`
        made.append(step(function)(5))
    assert [run(each, prefix=tmp_path)[each.id] for each in made] == [10, 15]


def test_a_partial_of_a_method_stands_by_both(tmp_path: Path) -> None:
    made = []
    for factor, x in ((2, 5), (2, 6), (3, 5)):
        bound: Any = functools.partial(Model(factor).predict, x)
        made.append(step(functools.update_wrapper(bound, Model.predict))())
    assert [run(each, prefix=tmp_path)[each.id] for each in made] == [10, 12, 15]


class Base:
    rate = 1

    @classmethod
    def made(cls) -> int:
        return cls.rate


class Sub(Base):
    rate = 2


def test_a_method_of_a_class_stands_by_the_class(tmp_path: Path) -> None:
    made = [step(each.made)() for each in (Base, Sub)]
    assert [run(each, prefix=tmp_path)[each.id] for each in made] == [1, 2]


class Settings(BaseModel):
    a: int = 1


def _array() -> Any:
    return np.zeros(1, dtype=int)


def _fill_array(value: Any) -> None:
    value[0] = 7


def _set_item(value: Any) -> None:
    value["a"] = 7


def _set_field(value: Any) -> None:
    value.a = 7


@step
def first_number(value: Any) -> int:
    if isinstance(value, Settings):
        return value.a
    return int(value[0]) if isinstance(value, np.ndarray | bytearray) else int(value["a"])


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (_array, _fill_array),
        (lambda: bytearray(b"\0"), _fill_array),
        (lambda: OrderedDict(a=0), _set_item),
        (lambda: Settings(a=0), _set_field),
    ],
    ids=["array", "bytearray", "mapping", "model"],
)
def test_a_handle_keeps_what_it_was_called_with(
    make: Callable[[], Any], change: Callable[[Any], None], tmp_path: Path
) -> None:
    """A handle is frozen. Lists and dicts are copied; an array that is changed afterwards is stored under the
    fingerprint of the old one, and every later run of the old one gets the wrong number."""
    value = make()
    handle = first_number(value)
    change(value)
    assert run(handle, prefix=tmp_path)[handle.id] == 0


def test_an_array_that_is_locked_is_not_copied() -> None:
    """Thousands of calls can share a large one."""
    locked, free = np.zeros(3), np.zeros(3)
    locked.flags.writeable = False
    view = free.view()
    view.flags.writeable = False
    shared = [first_number(each).recipe.arguments["value"] for each in (locked, free, view)]  # type: ignore[attr-defined]
    assert [new is old for new, old in zip(shared, (locked, free, view), strict=True)] == [True, False, False]


def test_steps_inside_other_mappings_give_way_to_their_values(tmp_path: Path) -> None:
    handle = first_number(OrderedDict(a=number(3)))
    assert run(handle, prefix=tmp_path)[handle.id] == 3


class Locked(BaseModel):
    _lock: Any = PrivateAttr(default_factory=threading.Lock)


def test_what_can_change_and_cannot_be_copied_is_refused() -> None:
    with pytest.raises(IdentityError, match=r"step 'first_number': argument: .*Locked cannot be copied"):
        first_number(Locked())


def test_a_captured_variable_that_was_changed_in_place_is_noticed(tmp_path: Path) -> None:
    """The identity has the variable as it was. It is compared when the step runs, also if it is the same
    object.
    """
    config = {"rate": 1}

    @step
    def captures() -> int:
        return config["rate"]

    handle = captures()
    config["rate"] = 2
    with pytest.raises(StepsFailedError, match=r"captured variable config.rate was 1 when .* and is 2 now"):
        run(handle, prefix=tmp_path)


def test_a_config_that_is_built_otherwise_when_it_runs_is_refused(tmp_path: Path) -> None:
    """The record says what the config was when the step was made; the function must not get another one."""
    table = {"x": 1}
    handle: ArtifactStep[Any] = ArtifactStep(
        name="late",
        version="2026.01.01",
        run=lambda config: Path(config["out"], "f").write_text(str(config["x"])) and None,
        build_config=lambda ctx: {"out": ctx.output_path, "x": table["x"]},
    )
    table["x"] = 2
    with pytest.raises(StepsFailedError, match=r"step 'late': build_config.*\(config.x: 1 → 2\)"):
        run(handle, prefix=tmp_path)
    table["x"] = 1
    again = handle.named("again")
    assert Path(run(again, prefix=tmp_path)[again.id] / "f").read_text() == "1"


@step
def zone_of(time: datetime) -> str:
    return str(time.tzinfo)


def test_the_zone_of_a_time_is_part_of_it(tmp_path: Path) -> None:
    """Two zones with one offset part half a year later: what a step computes from them is not the same."""
    noon = datetime(2026, 1, 1, 12)
    made = [zone_of(noon.replace(tzinfo=ZoneInfo(zone))) for zone in ("Europe/London", "Africa/Abidjan")]
    assert [run(each, prefix=tmp_path)[each.id] for each in made] == ["Europe/London", "Africa/Abidjan"]


@step
def missing(table: Any) -> int:
    return int(table["nothing"])


def test_what_a_mapping_gives_for_a_missing_key_is_part_of_it(tmp_path: Path) -> None:
    """A function in a `default_factory` is a function among the arguments: in the identity, or refused."""
    with pytest.raises(IdentityError, match="default_factory"):
        missing(defaultdict(lambda: 1))
    made = [missing(defaultdict(each)) for each in (int, bool, None)]
    assert len({each.hash_id for each in made}) == 3
    assert run(made[0], prefix=tmp_path)[made[0].id] == 0


@step
def number(n: int) -> int:
    return n


def test_a_function_that_moved_by_a_line_is_the_same(tmp_path: Path) -> None:
    """A notebook's cell is edited above the function and run again; handles of before and after meet in a
    run.
    """
    made = []
    for blank in ("", "\n# a new comment\n"):
        space: dict[str, Any] = {"__name__": "cell"}
        exec(compile(f"{blank}def f(x):\n    return x + 1\n", "<cell>", "exec"), space)
        made.append(step(cast("Callable[[int], int]", space["f"])))
    results = run(first_number({"a": made[0](1)}), made[1](1), prefix=tmp_path)
    assert results[made[1](1).id] == 2
