"""The experiment walk, end to end: handles, lowering, the runner on a named cluster, results.

The three examples of how a StepRunner executes steps run here as they are written.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.artifacts import open_store

MY_EXPERIMENT = """
from pathlib import Path

from treadle import Artifact, StepContext, step


@step
def documents(count: int, ctx: StepContext) -> None:
    for place in range(count):
        Path(ctx.output_path, f"{place}.txt").write_text("to be or not to be " * (place + 1))


@step
def words(folder: Artifact) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in sorted(Path(folder).glob("*.txt")):
        for word in file.read_text().split():
            counts[word] = counts.get(word, 0) + 1
    return counts


@step
def most_frequent(counts: dict[str, int], top: int = 2) -> list[str]:
    return sorted(counts, key=lambda word: (-counts[word], word))[:top]


def build():
    counted = words(documents(3))
    yield most_frequent(counted)
    yield most_frequent(counted, top=1).named("winner")
"""

SIMPLE_PIPELINE = """
from treadle.execution.step_runner import StepRunner
from treadle.execution.lazy import lower
from my_experiment import build  # returns a handle graph

# Lower the high-level graph to a StepSpec DAG

steps = [lower(step) for step in build()]

# Execute with default concurrency

StepRunner().run(steps)
"""

CUSTOM_CLIENT = """
from treadle.execution.step_runner import StepRunner
from treadle.fray.client import FrayClient
from treadle.execution.lazy import lower
from my_experiment import build

client = FrayClient(cluster="production-cluster")
steps = [lower(s) for s in build()]

runner = StepRunner(max_concurrent=4, fray_client=client)
runner.run(steps)
"""

STEP_RESULTS = """
runner = StepRunner()
results = runner.run(steps)  # returns mapping {step_id: result}

print(results[my_step.id])   # access specific step output
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_experiment.py").write_text(MY_EXPERIMENT)
    (tmp_path / "treadle.toml").write_text(
        'prefix = "store"\n[clusters.production-cluster]\nbackend = "threads"\nmax_workers = 2\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREADLE_PREFIX", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_experiment", None)


def records(project: Path) -> dict[str, str]:
    """Which build of each step of the store stands (name -> build)."""
    store = open_store(str(project / "store"))
    heads = [store.head(entry) for entry in store.ledger.places()]
    return {head.name: head.build for head in heads}


def test_the_examples_run_as_they_are_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, object] = {}
    exec(SIMPLE_PIPELINE, space)
    first = records(project)
    assert sorted(first) == ["documents", "most_frequent", "winner", "words"]

    exec(CUSTOM_CLIENT, space)
    assert records(project) == first, "all was done already"

    space["my_step"] = space["steps"][1]  # type: ignore[index]
    exec(STEP_RESULTS, space)
    assert capsys.readouterr().out == "['be']\n"


def test_a_named_cluster_runs_the_steps_from_nothing(project: Path) -> None:
    exec(CUSTOM_CLIENT, {})
    assert sorted(records(project)) == ["documents", "most_frequent", "winner", "words"]
