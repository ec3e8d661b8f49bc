"""Which steps are done: the search gives what the rule says, whatever the graph and the store."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.artifacts import FileEntry, RecordHead, open_store
from treadle.artifacts.record import write_head
from treadle.execution import StepSpec
from treadle.execution.freshness import look, standing
from treadle.execution.graph import gather
from treadle.storage.ledger import AttemptNote, Claim


def noop(path: str) -> None:
    """Do nothing."""


def head_of(step: StepSpec, build: str) -> RecordHead:
    return RecordHead(
        build, step.id, step.name, step.hash_id, "", dict.fromkeys(step.dep_ids, "first"), (), "",
        "2020-01-01T00:00:00+00:00", 0.0,
    )  # fmt: skip


def keep(step: StepSpec, head: RecordHead) -> None:
    """Commit a build of which the ledger knows this, past the runner."""
    store = open_store(str(step.output_path_prefix))
    claim = store.ledger.claim(store.place(step.output_path), lambda: None)
    assert isinstance(claim, Claim)
    note = AttemptNote("run", step.id, step.name, claim.place, 1, "done", "", head.started, 0.0)
    store.ledger.commit(claim, write_head(head), "{}", note, None)


def model(
    steps: list[StepSpec], records: dict[str, RecordHead], asked: set[str], forced: set[str]
) -> set[str]:
    """The rule as it is written, by going round until nothing changes. Gives what has to run."""
    stale = (asked - records.keys()) | forced
    for step in steps:
        own = records.get(step.id)
        present = [dep for dep in step.dep_ids if dep in records]
        if own is not None and any(own.deps[dep] != records[dep].build for dep in present):
            stale.add(step.id)
    while True:
        before = len(stale)
        stale |= {step.id for step in steps if stale & set(step.dep_ids)}
        stale |= {dep for step in steps if step.id in stale for dep in step.dep_ids} - records.keys()
        if len(stale) == before:
            return stale


DRAWN = st.integers(1, 9).flatmap(
    lambda size: st.tuples(
        st.tuples(*[st.sets(st.integers(0, max(place - 1, 0)), max_size=3) for place in range(size)]),
        st.tuples(*[st.sampled_from(["first", "first", "first", "second", "gone"]) for _ in range(size)]),
        st.sets(st.integers(0, size - 1), min_size=1),
        st.sets(st.integers(0, size - 1), max_size=1),
    )
)


@given(DRAWN)
@settings(max_examples=100, deadline=None)
def test_the_search_gives_what_the_rule_says(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    edges, builds, asked, forced = drawn
    store = str(tmp_path_factory.mktemp("store"))
    steps: list[StepSpec] = []
    for place, deps in enumerate(edges):
        steps.append(StepSpec(f"s{place}", noop, [steps[dep] for dep in deps if dep < place], {}, store))
    records = {
        step.id: head_of(step, build) for step, build in zip(steps, builds, strict=True) if build != "gone"
    }
    for step in steps:
        if step.id in records:
            keep(step, records[step.id])

    graph = gather(steps[place] for place in sorted(asked))
    forced_ids = {steps[place].id for place in forced} & set(graph.steps)
    reachable = [step for step in steps if step.id in graph.steps]
    plan = look(graph, forced_ids)
    assert set(plan.reasons) == model(reachable, records, {steps[place].id for place in asked}, forced_ids)
    assert not set(plan.done) & set(plan.reasons)
    assert {steps[place].id for place in asked} <= set(plan.done) | set(plan.reasons)


def test_a_record_stands_while_its_files_do(tmp_path: Path) -> None:
    step = StepSpec("a", noop, output_path_prefix=str(tmp_path))
    assert standing(step) is None
    record = replace(head_of(step, "first"), files=(FileEntry("sub/x.txt", 3, "00"),))
    keep(step, record)
    assert standing(step) is None, "the file is missing"
    file = Path(step.output_path, "sub", "x.txt")
    file.parent.mkdir(parents=True)
    file.write_text("abc")
    assert standing(step) == record
    file.write_text("ab")
    assert standing(step) is None, "the file was cut"
    open_store(str(tmp_path)).forget(step.output_path)
    file.write_text("abc")
    assert standing(step) is None, "the files alone are nothing"


def test_a_folder_or_a_loop_in_the_place_of_a_file_is_not_done(tmp_path: Path) -> None:
    """A folder may have the size of the file whose place it took."""
    step = StepSpec("a", noop, output_path_prefix=str(tmp_path))
    folder = Path(step.output_path, "x")
    folder.mkdir(parents=True)
    keep(step, replace(head_of(step, "first"), files=(FileEntry("x", folder.stat().st_size, "00"),)))
    assert standing(step) is None
    folder.rmdir()
    folder.symlink_to(folder)
    assert standing(step) is None
