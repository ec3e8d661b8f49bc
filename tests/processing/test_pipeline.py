"""The three stages: order kept, memory bounded, one error raised, no thread left."""

from __future__ import annotations

import contextvars
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.errors import ArgumentError
from treadle.processing.belt import MOST_BYTES
from treadle.processing.pipeline import run_three_stages


class Boom(Exception):
    pass


class Item:
    pass


def stage_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("treadle-stage")]


@given(items=st.lists(st.integers()), depth=st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_every_item_arrives_once_and_in_order(items: list[int], depth: int) -> None:
    """Determinism of the files rests on it: what is read first is written first."""
    written: list[int] = []
    run_three_stages(lambda: iter(items), lambda item: item * 2, written.append, depth=depth)
    assert written == [item * 2 for item in items]
    assert stage_threads() == []


@given(
    total=st.integers(0, 30),
    depth=st.integers(1, 3),
    read_at=st.none() | st.integers(0, 30),
    process_at=st.none() | st.integers(0, 29),
    write_at=st.none() | st.integers(0, 29),
)
@settings(max_examples=150, deadline=None)
def test_errors_anywhere_stop_all_three(
    total: int, depth: int, read_at: int | None, process_at: int | None, write_at: int | None
) -> None:
    """With every stage failing somewhere: one of these errors is raised, only what came before is written,
    and nobody waits for ever (the timeout of the suite would show it)."""

    def fail_at(stage: str, place: int | None, item: int) -> int:
        if item == place:
            raise Boom(stage)
        return item

    def read() -> Iterator[int]:
        for item in range(total):
            yield fail_at("read", read_at, item)

    written: list[int] = []

    def write(item: int) -> None:
        written.append(fail_at("write", write_at, item))

    reachable = [place for place in (read_at, process_at, write_at) if place is not None and place < total]
    try:
        run_three_stages(read, lambda item: fail_at("process", process_at, item), write, depth=depth)
        failed = False
    except Boom:
        failed = True
    assert failed == bool(reachable)
    assert written == list(range(len(written)))
    assert len(written) <= min([*reachable, total])
    assert stage_threads() == []


@pytest.mark.parametrize("stage", ["read", "process", "write"])
@pytest.mark.parametrize("depth", [1, 8])
def test_the_error_raised_is_the_very_one(stage: str, depth: int) -> None:
    """Not a wrapper and not the word by which the other stages leave: a user must see the cause."""
    boom = Boom(stage)

    def in_stage(name: str, item: int) -> int:
        if name == stage and item == 3:
            raise boom
        return item

    def read() -> Iterator[int]:
        for item in range(1_000_000):
            yield in_stage("read", item)

    with pytest.raises(Boom) as caught:
        run_three_stages(
            read, lambda item: in_stage("process", item), lambda item: in_stage("write", item), depth=depth
        )
    assert caught.value is boom
    assert stage_threads() == []


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_items_alive_are_bounded_by_the_depth(depth: int) -> None:
    """A slow writer must hold the reader back, or memory grows with the input."""
    lock = threading.Lock()
    alive, most = 0, 0

    def read() -> Iterator[int]:
        nonlocal alive, most
        for item in range(200):
            with lock:
                alive += 1
                most = max(most, alive)
            yield item

    def write(item: int) -> None:
        nonlocal alive
        if item < 5:
            time.sleep(0.01)  # a slow disk: the time in which a reader without bounds would run ahead
        with lock:
            alive -= 1

    run_three_stages(read, lambda item: item, write, depth=depth)
    assert most <= 2 * depth + 3


@pytest.mark.parametrize(("weight", "most"), [(MOST_BYTES, 2), (MOST_BYTES // 3 + 1, 4), (0, 2 * 8 + 3)])
def test_items_alive_are_bounded_by_their_bytes(weight: int, most: int) -> None:
    """Eight batches of long rows may be a hundred times as large as eight of short ones."""
    lock = threading.Lock()
    alive, found = 0, 0

    def read() -> Iterator[int]:
        nonlocal alive, found
        for item in range(100):
            with lock:
                alive += 1
                found = max(found, alive)
            yield item

    def write(item: int) -> None:
        nonlocal alive
        if item < 5:
            time.sleep(0.01)  # a slow disk: the time in which a reader without bounds would run ahead
        with lock:
            alive -= 1

    run_three_stages(read, lambda item: item, write, depth=8, weigh=lambda _: weight)
    assert found <= most


def test_what_a_stage_has_handed_on_it_does_not_keep() -> None:
    """While a stage waits, the last item that it had would take memory for nothing."""
    items = [Item() for _ in range(5)]
    known = [weakref.ref(each) for each in items]
    items.reverse()
    seen: list[int] = []

    def read() -> Iterator[Item]:
        while items:
            yield items.pop()

    def write(item: Item) -> None:
        del item
        seen.append(sum(each() is not None for each in known))

    run_three_stages(read, lambda item: item, write, depth=1, weigh=lambda _: MOST_BYTES)
    # One is written, and one is in the hands of the reader; the others have not been read, or are gone.
    assert all(alive <= 5 - at for at, alive in enumerate(seen))


def test_context_variables_reach_the_threads() -> None:
    """Logs and the current client hang on them; pool threads do not inherit them by themselves."""
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set by the caller")
    seen: list[tuple[str, str]] = []

    def read() -> Iterator[int]:
        seen.append(("read", variable.get()))
        yield 1

    def process(item: int) -> int:
        seen.append(("process", variable.get()))
        return item

    run_three_stages(read, process, lambda _: None, depth=1)
    assert seen == [("read", "set by the caller"), ("process", "set by the caller")]


def test_an_interrupt_of_the_writer_stops_the_other_stages() -> None:
    """Ctrl-C reaches the caller's thread only; the two threads must not go on or hang behind it."""

    def read() -> Iterator[int]:
        yield from range(1_000_000)

    def write(_item: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_three_stages(read, lambda item: item, write, depth=1)
    assert stage_threads() == []


def test_the_reader_is_closed_when_another_stage_fails() -> None:
    """An open file of an abandoned generator would stay open until the collector comes."""
    closed = threading.Event()

    def read() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.set()

    def process(_item: int) -> int:
        raise Boom

    with pytest.raises(Boom):
        run_three_stages(read, process, lambda _: None, depth=1)
    assert closed.is_set()


def test_each_stage_is_timed_apart() -> None:
    """A user who asks where the time went must not be told the waiting time of a neighbour."""
    seconds = {"read": 0.0, "process": 0.0, "write": 0.0}

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds[stage] += time.perf_counter() - started

    def process(item: int) -> int:
        time.sleep(0.01)
        return item

    run_three_stages(lambda: iter(range(10)), process, lambda _: None, depth=1, timed=timed)
    assert seconds["process"] >= 0.1
    assert seconds["read"] < 0.05
    assert seconds["write"] < 0.05


@pytest.mark.parametrize("depth", [0, -1])
def test_a_depth_below_one_is_refused(depth: int) -> None:
    """A queue without room would wait for ever."""
    with pytest.raises(ArgumentError, match=f"at least 1, got {depth}"):
        run_three_stages(lambda: iter([1]), lambda item: item, lambda _: None, depth=depth)
