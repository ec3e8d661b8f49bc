"""One experiment, run anywhere: the same ids, records, ends and errors; what is done is done everywhere."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from tests.execution.backends.experiment import KINDS, build, by_hand, traces
from treadle import plan, run
from treadle.artifacts import open_store
from treadle.errors import StepsFailedError
from treadle.execution import Results, StepState
from treadle.execution.blame import describe
from treadle.fray import Client
from treadle.kernel import Cached, Done, Failed

pytestmark = pytest.mark.timeout(300)

CHANGING = {"build", "started", "seconds", "run", "host"}
BACKENDS = ("threads", "processes", "ray")


class Ran(NamedTuple):
    """What a run gave, without what must differ: times, ids of builds, where it lies."""

    ends: Mapping[str, tuple[str, int]]
    errors: Mapping[str, str]
    values: Mapping[str, Any]
    records: Mapping[str, Any]
    attempts: list[tuple[str, int, str, str]]
    traces: Mapping[str, int]


def outcome_of(handles: list[Any], store: Path, client: Client) -> Results:
    try:
        return run(*handles, prefix=store, fray_client=client, max_concurrent=4)
    except StepsFailedError as error:
        return cast("Results", error.results)


def ran(client: Client, root: Path) -> Ran:
    """The experiment, run in a store of its own."""
    store, folder = root / "store", root / "traces"
    folder.mkdir(parents=True)
    results = outcome_of(build(str(folder)), store, client)
    specs = by_hand(str(store), str(folder))
    outcome_of(specs, store, client)
    here = open_store(str(store))

    def plain(text: str) -> str:
        text = text.replace(str(root), "ROOT").replace("RemoteError: LockedError", "LockedError")
        return re.sub(r"work/[\w-]+", "work/UNIQUE", text)

    records = {}
    for each in here.ledger.places():
        [record] = here.records(each.place)
        fields = {**asdict(record.head), **asdict(record.body)}
        fields["deps"] = sorted(record.head.deps)
        records[each.place] = plain(repr({key: fields[key] for key in fields.keys() - CHANGING}))
    ends = results.outcomes
    return Ran(
        {key: (type(each.outcome).__name__, each.attempts) for key, each in ends.items()},
        {key: plain(describe(e.outcome.error)) for key, e in ends.items() if isinstance(e.outcome, Failed)},
        {key: plain(repr(results[key])) for key in results},
        records,
        sorted((a.step_id, a.attempt, a.outcome, plain(a.reason)) for a in here.ledger.attempts()),
        traces(folder),
    )


@pytest.fixture(scope="module")
def on(client_of: Callable[[str], Client], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """What the experiment gave on a backend; run once for each."""
    known: dict[str, Ran] = {}

    def get(backend: str) -> Ran:
        if backend not in known:
            known[backend] = ran(client_of(backend), tmp_path_factory.mktemp(backend))
        return known[backend]

    return get


def test_on_threads_it_is_what_it_should_be(on: Callable[[str], Ran]) -> None:
    """What the others are compared with."""
    found = on("threads")
    names = [key.rpartition("-")[0] for key, end in found.ends.items() if end[0] == "Failed"]
    assert names == ["broken"] * len(KINDS)
    assert set(found.traces.values()) == {1, 3}, "each body once, but for the retried one"
    assert found.traces["flaky"] == 3
    assert {end[0] for end in found.ends.values()} == {"Done", "Failed", "Skipped"}


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("what", Ran._fields)
def test_elsewhere_it_is_the_same(on: Callable[[str], Ran], backend: str, what: str) -> None:
    expected, found = getattr(on("threads"), what), getattr(on(backend), what)
    assert found == expected


@pytest.mark.parametrize("first", BACKENDS)
@pytest.mark.parametrize("second", BACKENDS)
def test_what_is_done_is_done_for_every_backend(
    client_of: Callable[[str], Client], tmp_path: Path, folder: Path, first: str, second: str
) -> None:
    handles = build(str(folder))[:4]
    cold = outcome_of(handles, tmp_path / "store", client_of(first))
    before = traces(folder)
    assert {type(each.outcome) for each in cold.outcomes.values()} == {Done}
    warm = outcome_of(handles, tmp_path / "store", client_of(second))
    assert {type(each.outcome) for each in warm.outcomes.values()} == {Cached}
    assert traces(folder) == before, "nothing ran"
    assert dict(warm) == dict(cold)


def test_a_plan_is_the_same_after_a_run_elsewhere(elsewhere: Client, tmp_path: Path, folder: Path) -> None:
    """The hash of the code is that of the process that planned; a worker may see no source."""
    handles = build(str(folder))[:1]
    outcome_of(handles, tmp_path / "store", elsewhere)
    made = plan(*handles, prefix=tmp_path / "store")
    assert {each.state for each in made.steps} == {StepState.CACHED}


def test_what_is_built_anew_is_read_anew(client: Client, tmp_path: Path, folder: Path) -> None:
    """A worker that has read the former build of a dependency must not give that to the next step."""
    first = by_hand(str(tmp_path / "store"), str(folder))
    outcome_of(first, tmp_path / "store", client)
    for _ in range(3):
        run(*first, fray_client=client, force=["a"])
    assert set(traces(folder).values()) == {4}
