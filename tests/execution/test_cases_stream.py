"""Steps that come one after the other are held to the same rules as steps that are there at once."""

import shutil
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from treadle import run
from treadle.errors import ArgumentError, GraphError, StepsFailedError
from treadle.execution import Event, StepEnded, StepRunner, StepSpec
from treadle.execution.running import feed
from treadle.kernel import Cached, Done

pytestmark = pytest.mark.timeout(60)
DAY = "2026.01.01"


@pytest.fixture(autouse=True)
def parts_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step comes alone, as from a slow source."""
    monkeypatch.setattr(feed, "PART", 1)


def test_what_an_earlier_part_builds_anew_is_compared_with_a_later_one(toy: Any) -> None:
    """A step that is served though the step before it was built anew is stale, and stays so in every run."""
    a = toy.step("a")
    b = toy.step("b", a)
    StepRunner().run([b])
    toy.forget(a)
    results = StepRunner().run(iter([a, b]))
    assert toy.ran == ["a", "b", "a", "b"]
    assert results.counts == {Done: 2}
    assert StepRunner().run(iter([a, b])).counts == {Cached: 2}


def test_one_id_with_two_recipes_is_refused_also_when_they_come_apart(toy: Any) -> None:
    """Where the first one wins in silence, a result is one of another config."""

    def steps() -> Iterator[StepSpec]:
        for rate in (0.1, 0.2):
            yield toy.step("a", version=DAY, hash_attrs={"rate": rate})

    with pytest.raises(GraphError, match=f"step a@{DAY} is there twice, with different recipes"):
        StepRunner().run(steps())


def test_a_step_that_comes_again_runs_once(toy: Any) -> None:
    results = StepRunner().run(toy.step("a") for _ in range(5))
    assert toy.ran == ["a"]
    assert results.counts == {Done: 1}


def test_what_runs_while_the_source_is_slow_needs_no_more_of_it(toy: Any) -> None:
    """Else nothing runs until a long source has come to its end."""
    ended = threading.Event()

    def report(event: Event) -> None:
        if isinstance(event, StepEnded) and event.name == "a":
            ended.set()

    def steps() -> Iterator[StepSpec]:
        yield toy.step("a")
        assert ended.wait(30)
        yield toy.step("b")

    StepRunner(reporter=report).run(steps())
    assert toy.ran == ["a", "b"]


def test_what_needs_a_step_that_failed_earlier_is_skipped_because_of_it(toy: Any) -> None:
    toy.fails = {"a"}
    a = toy.step("a")
    later = [toy.step("b", a), toy.step("free")]
    with pytest.raises(StepsFailedError, match=f"skipped {later[0].id}: because of {a.id}"):
        StepRunner().run(iter([a, *later]))
    assert toy.ran == ["a", "free"]


def test_an_error_of_the_source_is_raised_when_what_runs_has_ended(toy: Any) -> None:
    def steps() -> Iterator[StepSpec]:
        yield toy.step("a")
        raise OSError("no more of it")

    with pytest.raises(OSError, match="no more of it"):
        StepRunner().run(steps())
    assert toy.ran in ([], ["a"])
    assert toy.is_done(toy.step("a")) == bool(toy.ran)


def test_what_vanishes_while_the_source_is_slow_is_built_anew_and_counted_once(toy: Any) -> None:
    ended = threading.Event()
    a = toy.step("a")

    def report(event: Event) -> None:
        if isinstance(event, StepEnded) and event.name == "a":
            ended.set()

    def steps() -> Iterator[StepSpec]:
        yield a
        assert ended.wait(30)
        shutil.rmtree(a.output_path)
        yield toy.step("b", a)

    results = StepRunner(reporter=report).run(steps())
    assert toy.ran == ["a", "a", "b"]
    assert results.counts == {Done: 2}
    assert len(results.outcomes) == 2


def test_an_endless_stream_ends_when_a_failure_stops_the_run(toy: Any) -> None:
    """Nothing new is started, so nothing new needs to come: it waited for ever for what it never asked."""
    toy.fails.add("s5")
    steps = (toy.step(f"s{place}") for place in count())
    with pytest.raises(StepsFailedError):
        StepRunner().run(steps, on_failure="stop")
    assert len(toy.ran) < 1_000


def test_a_generator_that_is_used_up_is_refused(toy: Any) -> None:
    """It gives no step, so the run would do nothing, and look like a success."""
    steps = (toy.step(f"s{place}") for place in range(3))
    assert len(list(steps)) == 3
    with pytest.raises(ArgumentError, match="used up"):
        run(steps, prefix=toy.store)
    with pytest.raises(ArgumentError, match="used up"):
        StepRunner().run(steps)
