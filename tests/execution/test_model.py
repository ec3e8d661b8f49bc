"""Random graphs through random runs, with failures, damage and Ctrl-C, held to a model of what must happen.

The seed is fixed; `TREADLE_TEST_SEED` gives another one, and a failure prints it.
"""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.execution.model import Model, Node, value_of
from treadle.artifacts import open_store
from treadle.errors import StepsFailedError
from treadle.execution import Event, Retry, StepEnded, StepRunner, StepSpec, StepStarted
from treadle.execution.running import feed
from treadle.fray import ResourceConfig, ThreadClient, stop_requested
from treadle.kernel import Cached, Done, Failed, Skipped

SLOTS = 3
CLIENT = ThreadClient(8, resources=ResourceConfig(cpu=100, tags={"slot": SLOTS}))
SEED = int(os.environ.get("TREADLE_TEST_SEED", "20261129"))


class Runs(RuleBasedStateMachine):
    """One store, a graph that grows, and runs over parts of it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="treadle-model-")
        self.store = open_store(self.folder)
        self.model = Model()
        self.lock = threading.Lock()
        self.faults: dict[str, int] = {}
        self.bodies: dict[str, int] = {}
        self.ended_well: list[str] = []
        self.running: set[str] = set()
        self.taken = self.limit = 0
        self.wrong: list[str] = []

    def teardown(self) -> None:
        self.store.ledger.close()
        shutil.rmtree(self.folder)

    # What changes the graph and the store

    @initialize(data=st.data(), size=st.integers(3, 9))
    def begin(self, data: st.DataObject, size: int) -> None:
        for _ in range(size):
            self.grow(data)

    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        names = list(self.model.nodes)
        deps = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        tries, slots = data.draw(st.integers(1, 3)), data.draw(st.integers(0, SLOTS))
        name = f"s{len(names):02}"
        self.model.nodes[name] = Node(name, tuple(deps), tries, data.draw(st.booleans()), slots)

    @rule(place=st.integers(0, 20), how=st.sampled_from(["delete", "cut", "withdraw"]))
    def damage(self, place: int, how: str) -> None:
        built = [node for node in self.model.nodes.values() if node.stands and node.whole]
        if not built:
            return
        node = built[place % len(built)]
        step = self.specs()[node.name]
        if how == "withdraw":
            self.store.forget(step.output_path)
            node.stands = False
        elif node.has_file:
            file = Path(step.output_path, "out.txt")
            shutil.rmtree(step.output_path) if how == "delete" else file.write_text("")
            node.whole = False

    # Runs

    @rule(
        data=st.data(),
        limit=st.integers(1, 5),
        stream=st.booleans(),
        part=st.integers(1, 4),
        halt_after=st.sampled_from([None] * 9 + [0, 1, 4]),
    )
    def run(self, data: st.DataObject, limit: int, stream: bool, part: int, halt_after: int | None) -> None:
        names = list(self.model.nodes)
        targets = data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
        forced: list[str] = []
        if stream:
            # With what they need, which comes first: what was served already is not looked at again.
            targets = sorted(self.model.below(targets))
        else:
            known = sorted(self.model.below(targets))
            forced = data.draw(st.lists(st.sampled_from(known), unique=True, max_size=2))
        # Places, and not names, since after a Ctrl-C it is for the machine to say what is stale.
        stale = sorted(self.model.has_to_run(targets, forced)[1]) or names
        places = data.draw(st.dictionaries(st.integers(0, 5), st.integers(1, 3), max_size=3))
        self.faults = {stale[place % len(stale)]: times for place, times in places.items()}
        expected = self.model.expect(targets, forced, self.faults)
        self.bodies, self.ended_well, self.limit = {}, [], limit

        specs = self.specs()
        asked = [specs[name] for name in targets]
        runner = StepRunner(limit, CLIENT, reporter=halting(halt_after))
        with suppress(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
            patch.setattr(feed, "PART", part)
            try:
                results = runner.run(iter(asked) if stream else asked, force=forced)
            except StepsFailedError as error:
                results = error.results  # type: ignore[assignment]
            self.agree(expected, results, specs)
            assert self.bodies == expected.bodies()
        for name in self.ended_well:
            assert name in expected.done, "nothing is built that need not be"
            self.model.build(name)

    def agree(self, expected: Any, results: Any, specs: dict[str, StepSpec]) -> None:
        ends = {each.name: each.outcome for each in results.outcomes.values()}
        kinds = {
            kind: {name for name, outcome in ends.items() if isinstance(outcome, kind)}
            for kind in (Cached, Done, Failed, Skipped)
        }
        assert kinds[Cached] == expected.cached
        assert kinds[Done] == set(expected.done)
        assert kinds[Failed] == set(expected.failed)
        assert kinds[Skipped] == set(expected.skipped)
        assert sum(results.counts.values()) == len(ends)
        for name, culprits in expected.skipped.items():
            assert set(ends[name].because) == {specs[each].id for each in culprits}
        for name, attempts in expected.bodies().items():
            assert results.outcomes[specs[name].id].attempts == attempts

    # Steps

    def specs(self) -> dict[str, StepSpec]:
        made: dict[str, StepSpec] = {}
        for node in self.model.nodes.values():
            made[node.name] = self.spec(node, [made[dep] for dep in node.deps])
        return made

    def spec(self, node: Node, deps: list[StepSpec]) -> StepSpec:
        return StepSpec(
            node.name,
            lambda path: self.body(node, deps, path),
            deps,
            output_path_prefix=self.folder,
            retry=Retry(node.tries, delay=0),
            timeout=0.05 if node.name.endswith("3") else None,
            resources=ResourceConfig(cpu=0, tags={"slot": node.slots}) if node.slots else None,
        )

    def body(self, node: Node, deps: list[StepSpec], path: str) -> str:
        self.enter(node)
        try:
            given = [self.given(dep) for dep in deps]
            self.check(not list(Path(path).iterdir()), f"{node.name} began in a folder that is not empty")
            value = value_of(node.name, node.builds + 1, given)
            if node.has_file:
                Path(path, "out.txt").write_text(value)
            if self.bodies[node.name] <= self.faults.get(node.name, 0):
                hang = node.name.endswith("3")
                while hang and not stop_requested():  # until its time is over
                    time.sleep(0.001)
                raise ValueError(f"{node.name} is broken")
            self.ended_well.append(node.name)
            return value
        finally:
            with self.lock:
                self.running.discard(node.name)
                self.taken -= node.slots

    def enter(self, node: Node) -> None:
        with self.lock:
            self.bodies[node.name] = self.bodies.get(node.name, 0) + 1
            self.check(node.name not in self.running, f"{node.name} runs twice at once")
            self.running.add(node.name)
            self.taken += node.slots
            self.check(self.taken <= SLOTS, f"{self.taken} slots are taken")
            self.check(len(self.running) <= self.limit, f"{len(self.running)} bodies run at once")

    def given(self, dep: StepSpec) -> str:
        """What a dependency gave; it must be committed, and whole, when a body begins."""
        record = self.store.record(dep.output_path)
        self.check(record is not None, f"{dep.name} is not committed")
        value = str(self.store.load_value(dep.output_path))
        if self.model.nodes[dep.name].has_file:
            self.check(Path(dep.output_path, "out.txt").read_text() == value, f"{dep.name} is not whole")
        return value

    def check(self, right: bool, what: str) -> None:
        if not right:
            self.wrong.append(what)

    # What holds after every rule

    @invariant()
    def nothing_went_wrong_in_a_body(self) -> None:
        assert not self.wrong
        assert not self.running

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        specs = self.specs()
        for node in self.model.nodes.values():
            step = specs[node.name]
            record = self.store.record(step.output_path)
            assert (record is not None) == node.stands
            assert len(self.store.records(self.store.place(step.output_path))) == node.builds
            if record is not None:
                assert record.number == node.builds
                assert self.store.load_value(step.output_path) == node.value
            if node.stands and node.whole and node.has_file:
                assert Path(step.output_path, "out.txt").read_text() == node.value
            if not node.builds:
                assert not Path(step.output_path).exists(), "half of it is to be seen"
        assert not self.store.ledger.owners(self.store.place(step.output_path) for step in specs.values())
        assert not list(self.left_over())

    def left_over(self) -> Iterator[Path]:
        yield from Path(self.folder).glob(".treadle/work/*/*")
        yield from Path(self.folder).glob("*/.*")


def halting(after: int | None) -> Any:
    """A reporter that presses Ctrl-C after so many events of steps."""
    seen = 0

    def report(event: Event) -> None:
        nonlocal seen
        if isinstance(event, StepStarted | StepEnded):
            seen += 1
            if after is not None and seen == after + 1:
                raise KeyboardInterrupt

    return report


def hold(examples: int, steps: int, start: int) -> None:
    print(f"TREADLE_TEST_SEED={start}")
    machine = seed(start)(type("SeededRuns", (Runs,), {}))
    bounds = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # to make an example smaller takes minutes: by hand, with Phase.shrink
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=bounds)


def test_random_runs_do_what_the_model_says() -> None:
    hold(25, 25, SEED)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("nth", range(2))
def test_many_random_runs_do_what_the_model_says(nth: int) -> None:
    hold(100, 40, SEED + 1 + nth)
