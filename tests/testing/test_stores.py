"""Stores for a test: fresh, apart from everything, and gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import fsspec
import pytest

from treadle.artifacts import Store, find_prefix
from treadle.execution import StepRunner, StepSpec
from treadle.testing import EventLog, memory_store, temporary_store

MakeStore = Callable[[], AbstractContextManager[Store]]


@pytest.mark.parametrize("make", [temporary_store, memory_store])
def test_a_store_is_fresh_each_time_and_the_environment_as_before(make: MakeStore) -> None:
    environment, before = dict(os.environ), find_prefix()
    log = EventLog()
    for _ in range(2):
        with make() as store:
            step = StepSpec("a", lambda path: 1, output_path_prefix=store.prefix)
            assert StepRunner(reporter=log).run([step])[step.id] == 1
            assert log.ends() == {step.id: "done"}
            StepRunner(reporter=log).run([step])
            assert log.ends() == {step.id: "cached"}
    assert dict(os.environ) == environment
    assert find_prefix() == before


def test_a_temporary_store_is_gone_afterwards_also_after_an_error() -> None:
    with pytest.raises(KeyError), temporary_store() as store:
        StepRunner().run([StepSpec("a", lambda path: None, output_path_prefix=store.prefix)])
        assert Path(store.prefix).exists()
        raise KeyError
    assert not Path(store.prefix).parent.exists()


def test_a_store_in_memory_is_emptied_afterwards() -> None:
    with memory_store() as store:
        with fsspec.open(f"{store.prefix}/a/b", "w") as file:
            file.write("x")
        fs, root = fsspec.url_to_fs(store.prefix)
        assert fs.find(root)
    assert not fs.find(root)


def test_stores_may_be_open_together() -> None:
    with temporary_store() as one, temporary_store() as two, memory_store() as three:
        assert len({one.prefix, two.prefix, three.prefix}) == 3
        first = StepSpec("a", lambda path: 1, output_path_prefix=one.prefix)
        second = StepSpec("b", lambda path: 2, [first], output_path_prefix=two.prefix)
        third = StepSpec("c", lambda path: 3, [second], output_path_prefix=three.prefix)
        assert sorted(StepRunner().run([third]).values()) == [1, 2, 3]
        assert [len(list(each.ledger.places())) for each in (one, two, three)] == [1, 1, 1]
