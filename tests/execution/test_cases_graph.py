"""Large and odd graphs: what a graph costs grows with its steps and edges, and nothing is looked at twice."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from treadle.errors import GraphError
from treadle.execution import StepRunner, StepSpec
from treadle.execution.graph import gather
from treadle.fray import JobRequest, ThreadClient


def noop(path: str) -> None:
    """Do nothing."""


def spec(name: str, *deps: StepSpec, **options: Any) -> StepSpec:
    return StepSpec(name, noop, deps, output_path_prefix="/nowhere", **options)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions of treadle are called: what the work costs, on any machine."""
    counted = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and "treadle" in frame.f_code.co_filename

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def test_dependencies_may_come_from_a_generator(toy: Any) -> None:
    """One that is taken from again at the start of the run would be empty by then, or never end."""
    sources = [toy.step(f"a{place:03}") for place in range(500)]
    fn, store = toy.step("sink").fn, str(toy.store)
    sink = StepSpec("sink", fn, (each for each in sources), output_path_prefix=store)  # type: ignore[arg-type]
    assert len(sink.dep_ids) == 500
    StepRunner().run([sink])
    assert len(toy.ran) == 501
    assert toy.ran[-1] == "sink"
    assert toy.ran_again([sink]) == []


def test_a_chain_of_ten_thousand_steps_is_put_in_order_without_recursion() -> None:
    chain = [spec("c00000")]
    for place in range(1, 10_000):
        chain.append(spec(f"c{place:05}", chain[-1]))
    assert gather(chain[-1:]).order == tuple(each.id for each in chain)


def test_a_cycle_is_named_by_all_its_members_and_by_nothing_else() -> None:
    a, outside = spec("a"), spec("outside")
    b = spec("b", a, outside)
    c = spec("c", b)
    object.__setattr__(a, "deps", (c,))
    with pytest.raises(GraphError, match=f"^cycle: {a.id} -> {c.id} -> {b.id} -> {a.id}$"):
        gather([spec("end", c)])


def graphs(count: int) -> list[StepSpec]:
    """The last steps of so many graphs of a hundred steps."""
    lasts = []
    for number in range(count):
        last = spec(f"g{number}/s0")
        for place in range(1, 100):
            last = spec(f"g{number}/s{place}", last)
        lasts.append(last)
    return lasts


def test_to_put_graphs_together_takes_work_in_proportion_to_their_size() -> None:
    """Copies and sorts for every graph that is added make fifty pipelines take a quarter of a minute."""
    few, many = graphs(10), graphs(50)
    assert len(gather(many).order) == 5_000
    assert calls_of(lambda: gather(many)) < 5.5 * calls_of(lambda: gather(few))


def test_each_place_is_looked_at_once_however_many_edges_lead_to_it(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edge that asks for its file again makes a bipartite graph of 3,000 by 3,000 take hours to start."""
    sources = [toy.step(f"a{place}") for place in range(100)]
    sinks = [toy.step(f"b{place}", *sources) for place in range(100)]
    StepRunner().run(sinks)
    looks: Counter[str] = Counter()
    stat = __import__("os").stat

    def counting(path: Any, *args: Any, **options: Any) -> Any:
        if str(path).endswith("out.txt"):
            looks[str(path)] += 1
        return stat(path, *args, **options)

    monkeypatch.setattr("os.stat", counting)
    assert toy.ran_again([*sources, *sinks]) == []
    assert len(looks) == 200
    assert set(looks.values()) == {1}


class Counting(ThreadClient):
    """Counts what it is asked to run."""

    submitted = 0

    def submit(self, request: JobRequest[Any]) -> Any:
        self.submitted += 1
        return super().submit(request)


def test_a_done_step_costs_a_look_and_no_worker(toy: Any) -> None:
    """A process and all its imports for each step that is done already makes a resume take hours."""
    steps = [toy.step(f"s{place:03}") for place in range(300)]
    StepRunner().run(steps)
    client = Counting(4)
    assert len(StepRunner(4, client).run(steps)) == 300
    assert client.submitted == 0
    toy.forget(steps[7])
    StepRunner(4, client).run(steps)
    assert client.submitted == 1


def test_a_shared_step_runs_once_whoever_holds_it(toy: Any) -> None:
    """A stage that runs once for each pipeline that holds it costs as many times its price."""

    def pipeline(name: str) -> StepSpec:
        shared = toy.step("shared")
        left, right = toy.step("left", shared), toy.step("right", shared)
        sink: StepSpec = toy.step(name, left, right)
        return sink

    results = StepRunner().run([pipeline("one"), pipeline("two")])
    assert sorted(toy.ran) == ["left", "one", "right", "shared", "two"]
    assert len(results) == sum(results.counts.values()) == 5


def test_two_steps_of_one_name_and_version_and_different_recipes_are_refused_by_what_differs() -> None:
    """Where the last one wins in silence, a result is one of another config."""
    first = spec("a", version="2026.01.01", hash_attrs={"lr": 0.1, "seed": 1})
    second = spec("a", version="2026.01.01", hash_attrs={"lr": 0.2, "seed": 1})
    with pytest.raises(GraphError) as caught:
        gather([first, spec("b", second)])
    message = str(caught.value)
    assert message.startswith("step a@2026.01.01 is there twice, with different recipes: ")
    assert "lr" in message
    assert "0.1" in message
    assert "0.2" in message
    assert "seed" not in message
    assert message.endswith("give one of them another version or another name")
