"""What cannot be sent is named, with the way to it."""

from __future__ import annotations

import pickle
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import cloudpickle
import pytest

from treadle.errors import NotSendableError
from treadle.fray.culprit import find_culprit, parts_of
from treadle.fray.parcel import pack_call
from treadle.fray.pickling import pickled
from treadle.fray.travelling import Travelling

LOCK = threading.Lock()


@dataclass
class Config:
    rate: float
    inner: object


class Slotted:
    __slots__ = ("lock", "rate")

    def __init__(self) -> None:
        self.rate = 1
        self.lock = threading.Lock()


class Trainer:
    def __init__(self, device: object) -> None:
        self.device = device

    def fit(self) -> None: ...


class Refuses:
    def __reduce__(self) -> tuple[Any, ...]:
        raise ValueError("not for sale")


class Hostile(dict[str, object]):
    """Answers nothing that it is asked."""

    def items(self) -> Any:
        raise ValueError("no items")

    def __reduce_ex__(self, _: object) -> Any:
        raise KeyError("no pickle")


class Broken:
    def __init__(self) -> None:
        self.lock = LOCK

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (), {"number": 1, "lock": LOCK}


def train(*_: object, **__: object) -> None: ...


def closing_over(lock: object) -> Callable[[], object]:
    def train() -> object:
        return lock

    return train


def with_a_default() -> Callable[[], object]:
    def train(rate: float = 0.5, lock: object = LOCK, *, other: object = None) -> object:
        return lock

    return train


def with_a_keyword_default() -> Callable[[], object]:
    def train(*, lock: object = LOCK) -> object:
        return lock

    return train


def with_a_global() -> Callable[[], object]:
    def train() -> object:
        return [LOCK for _ in range(3)]

    return train


def with_a_function_inside() -> Callable[[], object]:
    inner = closing_over(LOCK)

    def outer() -> object:
        return inner()

    return outer


def with_a_class() -> object:
    class Local:
        lock = LOCK

    return Local()


def in_a_ring() -> list[object]:
    ring: list[object] = [1]
    ring.append(ring)
    ring.append(LOCK)
    return ring


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (closing_over(LOCK), "train -> closure variable 'lock' -> a _thread.lock object"),
        (closing_over({"a": [1, LOCK]}), "train -> closure variable 'lock' -> item 'a' -> item 1 -> a _th"),
        (partial(train, 1, LOCK), "train -> argument 2 -> a _thread.lock object"),
        (partial(train, device=LOCK), "train -> argument 'device' -> a _thread.lock object"),
        (partial(closing_over(LOCK)), "train -> closure variable 'lock' -> a _thread.lock object"),
        (
            partial(Trainer(LOCK).fit),
            "Trainer.fit -> the Trainer that it is a method of -> attribute 'device'",
        ),
        (
            Trainer(LOCK).fit,
            "Trainer.fit -> the Trainer that it is a method of -> attribute 'device' -> a _th",
        ),
        (with_a_default(), "train -> default of 'lock' -> a _thread.lock object"),
        (with_a_keyword_default(), "train -> default of 'lock' -> a _thread.lock object"),
        (
            with_a_function_inside(),
            "outer -> closure variable 'inner' -> closure variable 'lock' -> a _thread",
        ),
        (
            partial(train, Config(0.5, Config(1, LOCK))),
            "argument 1 -> attribute 'inner' -> attribute 'inner'",
        ),
        (partial(train, Slotted()), "argument 1 -> attribute 'lock' -> a _thread.lock object"),
        (partial(train, {LOCK: 1}), "argument 1 -> key <unlocked _thread.lock"),
        (partial(train, deque([1, LOCK])), "argument 1 -> item 1 -> a _thread.lock object"),
        (partial(train, {1, LOCK}), "argument 1 -> item"),
        (partial(train, in_a_ring()), "argument 1 -> item 2 -> a _thread.lock object"),
        (partial(train, with_a_class()), "its class -> attribute 'lock' -> a _thread.lock object"),
        (partial(train, (n for n in "ab")), "train -> argument 1 -> a generator object"),
        (partial(train, Hostile()), r"argument 1 -> a .*Hostile object: 'no pickle'"),
        (partial(train, Broken()), r"argument 1 -> attribute 'lock' -> a _thread.lock object"),
        (partial(train, Refuses()), r"argument 1 -> a .*Refuses object: not for sale"),
    ],
)
def test_the_way_to_the_object_is_named(value: object, path: str) -> None:
    with pytest.raises(NotSendableError, match=path) as caught:
        pickled(value, "job 'train'")
    assert str(caught.value).startswith("job 'train' cannot be sent to another process: ")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.what, copy.path, copy.reason) == (
        caught.value.what,
        caught.value.path,
        caught.value.reason,
    )


def test_a_global_variable_of_a_function_that_goes_by_value() -> None:
    import sys

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        with pytest.raises(NotSendableError, match=r"train -> global variable 'LOCK' -> a _thread\.lock"):
            pickled(with_a_global(), "job 'train'")
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def test_a_call_is_named_after_its_function_and_a_travelling_value_after_itself() -> None:
    with pytest.raises(NotSendableError, match=r"job 'x' .*: train -> closure variable 'lock'"):
        pack_call("x", closing_over(LOCK))
    tenant: Travelling[Any] = Travelling("tenant of a test")
    with (
        tenant.use([LOCK]),
        pytest.raises(
            NotSendableError, match=r": travelling value 'tenant of a test' -> item 0 -> a _thread"
        ),
    ):
        pack_call("x", train)


@pytest.mark.parametrize("depth", [5_000, 100_000])
def test_what_is_nested_too_deeply_says_so(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    with pytest.raises(NotSendableError, match="nested too deeply"):
        pickled(nested, "the result of the job")


def test_a_part_among_very_many_is_found_or_its_container_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [*([b"x"] for _ in range(3_000)), LOCK]
    with pytest.raises(NotSendableError, match=r"argument 1 -> item 3000 -> a _thread.lock"):
        pickled(partial(train, many), "job 'train'")
    monkeypatch.setattr("treadle.fray.culprit.MOST_TRIED", 100)
    with pytest.raises(NotSendableError, match=re.escape("argument 1 -> a list object: cannot pickle")):
        pickled(partial(train, many), "job 'train'")


def test_what_can_be_sent_is_sent() -> None:
    assert pickle.loads(pickled({"a": closing_over(3)}, "x"))["a"]() == 3


def test_parts_without_end_are_not_looked_at_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        def __reduce__(self) -> tuple[Any, ...]:
            return list, (), {"lock": LOCK}, iter(int, 1)

    parts = parts_of(Endless())
    assert [label for label, _ in islice(parts, 4)] == ["attribute 'lock'", "item 0", "item 1", "item 2"]
    monkeypatch.setattr("treadle.fray.culprit.MOST_SEEN", 100)
    monkeypatch.setattr("treadle.fray.culprit._why_not", lambda part: "" if part is LOCK else "it has no end")
    assert find_culprit([("", Endless())]) == (
        ["a tests.fray.test_pickling." + Endless.__qualname__ + " object"],
        "it has no end",
    )
