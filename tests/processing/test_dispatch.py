"""The lifecycle of a run: its order, its one finalisation, and what is left of it when it fails."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from treadle.domain.result import Counters
from treadle.errors import AccountError, ArtifactError, ManifestError, RunError, StoppedError, TreadleError
from treadle.ext import Job, RunContext, register_pattern_runner
from treadle.fray import JobRequest, ThreadClient
from treadle.processing import run_from_manifest
from treadle.telemetry import (
    Event,
    MetricsFinalized,
    RecordingSink,
    RunEnded,
    RunMetrics,
    RunStarted,
    finalize_metrics,
)

MEASURED = "runtime: {metrics_enabled: true}\n"
TOKENIZE = """
    run: {type: partition}
    inputs: {documents: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    transform: {name: tokenize}
    outputs: {rows: {backend: parquet, path: rows}}
    runtime: {metrics_enabled: true}
"""


class Boom(Exception):
    pass


def fail_with(error: BaseException) -> Callable[[Job], Counters]:
    def runner(job: Job) -> Counters:
        raise error

    return runner


def register(name: str, runner: Callable[[Job], Counters]) -> str:
    """A manifest of a run type that `runner` carries out."""
    register_pattern_runner(name, runner)
    return f"run: {{type: {name}}}\n{MEASURED}"


def ended(sink: RecordingSink) -> RunEnded:
    (event,) = [each for each in sink.events if isinstance(each, RunEnded)]
    return event


@pytest.fixture
def finalized(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outcomes that the metrics were finalised with, by the real function."""
    outcomes: list[str] = []

    def recording(metrics: RunMetrics, outcome: Any) -> object:
        outcomes.append(outcome)
        return finalize_metrics(metrics, outcome)

    monkeypatch.setattr("treadle.processing.dispatch.finalize_metrics", recording)
    return outcomes


def test_a_run_that_succeeds(workshop: Any, finalized: list[str]) -> None:
    """Start, units, metrics, end; and the outcome says what the files say."""
    workshop.rows("a", [{"text": "one two"}, {"text": "three"}])
    workshop.rows("b", [{"text": "four"}])
    outcome = workshop.run(TOKENIZE, user="ada", integration="test", labels={"a": "b"})
    assert workshop.events() == ["RunStarted", "UnitDone", "UnitDone", "MetricsFinalized", "RunEnded"]
    assert finalized == ["finished"]
    started = workshop.sink.events[0]
    assert isinstance(started, RunStarted)
    assert (started.step_id, started.run_type, started.user, started.integration) == (
        "step",
        "partition",
        "ada",
        "test",
    )
    assert outcome.counters == Counters(rows_in=3, rows_out=3)
    assert outcome.outputs["rows"].rows == 3
    assert outcome.metrics is not None
    rows = {name: count for name, count in outcome.metrics.counters.items() if not name.startswith("bytes_")}
    assert rows == {"filtered": 0, "rejected": 0, "rows_in": 3, "rows_out": 3}
    assert outcome.seconds == ended(workshop.sink).seconds > 0
    assert not workshop.sink.closed, "the sink belongs to the caller"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Boom("broken"), "failed"),
        (RunError("refused"), "failed"),
        (SystemExit(3), "failed"),
        (KeyboardInterrupt(), "cancelled"),
    ],
)
def test_a_run_that_fails_is_finalised_once_and_told(
    workshop: Any, finalized: list[str], error: BaseException, outcome: str
) -> None:
    """Whoever watches must learn of every end, and of each only once."""
    body = register(f"failing_{type(error).__name__}", fail_with(error))
    with pytest.raises(type(error)) as caught:
        workshop.run(body)
    assert caught.value is error
    assert workshop.events() == ["RunStarted", "MetricsFinalized", "RunEnded"]
    assert finalized == [outcome]
    end = ended(workshop.sink)
    assert (end.outcome, end.counters, end.error) == (outcome, {}, f"{type(error).__name__}: {error}")


def test_a_pattern_that_fails_after_writing_leaves_nothing(workshop: Any) -> None:
    """Outputs appear whole or not at all; only the bad rows stay, since they are why it failed."""
    good = [{"text": "word"}] * 50
    workshop.rows("a", [*good, "not json", *good])
    workshop.rows("b", [*good, "not json"])
    with pytest.raises(RunError, match="2 of 152 rows read are bad"):
        workshop.run(TOKENIZE + "    errors: {on_bad_row: quarantine, max_bad_rows: 1}\n")
    assert workshop.visible() == ["step.quarantine.jsonl"]
    assert workshop.events()[-2:] == ["MetricsFinalized", "RunEnded"]
    outcome = workshop.run(TOKENIZE + "    errors: {on_bad_row: quarantine}\n")
    assert outcome.counters.rejected == 2
    assert workshop.visible() == [
        "rows/_manifest.json",
        "rows/part-00000.parquet",
        "rows/part-00001.parquet",
        "step.account.json",
        "step.quarantine.jsonl",
    ]


def test_an_account_that_does_not_add_up_is_not_committed(workshop: Any) -> None:
    """The last line of defence against a plugin that loses rows."""
    body = register("losing", lambda job: Counters(rows_in=10, rows_out=8, filtered=1))
    with pytest.raises(AccountError, match=r"step: 10 rows in, but 8 out \+ 1 filtered \+ 0 rejected"):
        workshop.run(body + "outputs: {rows: {backend: jsonl, path: rows}}\n")
    assert workshop.visible() == []


@pytest.mark.parametrize("given", [None, 3, "rows"])
def test_a_pattern_that_returns_something_else_is_told(workshop: Any, given: Any) -> None:
    """Without counters there is no account, so there is nothing to commit."""
    body = register(f"returning_{type(given).__name__}", lambda job: given)
    with pytest.raises(RunError, match=f"returned {type(given).__name__}, expected Counters"):
        workshop.run(body + "outputs: {rows: {backend: jsonl, path: rows}}\n")
    assert workshop.visible() == []


def test_counters_below_zero_do_not_add_up(workshop: Any) -> None:
    body = register("negative", lambda job: Counters(rows_in=2, rows_out=4, filtered=-2))
    with pytest.raises(AccountError):
        workshop.run(body)


def test_the_log_hears_of_the_end_when_the_sink_is_broken(workshop: Any) -> None:
    """Two listeners: that one of them is deaf is no reason to leave the other without an end."""
    body = register("logged", lambda job: Counters()) + 'metrics: {log: "log.jsonl"}\n'
    with pytest.raises(RunError, match="no room"):
        run_from_manifest(
            workshop.manifest(body), RunContext.create("step", workshop.out), sink=BrokenAtTheEnd()
        )
    logged = (workshop.out / "log.jsonl").read_text()
    assert logged.count("MetricsFinalized") == logged.count("RunEnded") == 1


class BrokenAtTheEnd(RecordingSink):
    """Cannot keep the last events, like a log on a disk that has become full."""

    def emit(self, event: Event) -> None:
        super().emit(event)
        if isinstance(event, MetricsFinalized | RunEnded):
            raise RunError(f"no room for {type(event).__name__}")


def test_a_failing_finaliser_does_not_hide_the_error_of_the_work(workshop: Any) -> None:
    """The user needs the cause; that the log is full as well is a note."""
    body = register("failing_twice", fail_with(Boom("the cause")))
    sink = BrokenAtTheEnd()
    with pytest.raises(Boom, match="the cause") as caught:
        run_from_manifest(workshop.manifest(body), RunContext.create("step", workshop.out), sink=sink)
    assert [type(each).__name__ for each in sink.events if "Sampled" not in type(each).__name__] == [
        "RunStarted",
        "MetricsFinalized",
        "RunEnded",
    ]
    notes = "".join(caught.value.__notes__)
    assert "no room for MetricsFinalized" in notes
    assert "no room for RunEnded" in notes


def test_a_failing_finaliser_of_a_good_run_is_raised(workshop: Any) -> None:
    """Nothing is swallowed: a run whose end nobody could be told of is no silent success."""
    workshop.rows("a", [{"text": "word"}])
    manifest = workshop.manifest("params: {in: {type: path}}" + TOKENIZE.replace("\n    ", "\n"))
    ctx = RunContext.create("step", workshop.out)
    with pytest.raises(RunError, match="no room for MetricsFinalized"):
        run_from_manifest(manifest, ctx, {"in": str(workshop.root / "in")}, sink=BrokenAtTheEnd())


def test_the_wrong_step_is_refused_before_it_starts(workshop: Any) -> None:
    """A manifest run under another name would be recorded as something it is not."""
    manifest = workshop.manifest("run: {type: partition}")
    with pytest.raises(ManifestError, match=r"manifest.yaml:2:1: step_id: expected 'other', .*found 'step'"):
        run_from_manifest(manifest, RunContext.create("other", workshop.out), sink=workshop.sink)
    assert workshop.sink.events == []


def test_an_unknown_run_type_lists_the_known(workshop: Any) -> None:
    with pytest.raises(ManifestError) as caught:
        workshop.run("run: {type: partitoin}")
    (problem,) = caught.value.problems
    assert (problem.field, problem.line, problem.nearest) == ("run.type", 4, "partition")
    for name in ("cluster", "embed_train", "generate", "mapping", "partition", "reduce", "run.entry"):
        assert name in problem.expected
    assert workshop.events() == []


def test_without_metrics_nothing_is_measured(workshop: Any, finalized: list[str]) -> None:
    workshop.rows("a", [{"text": "word"}])
    outcome = workshop.run(TOKENIZE.replace("true", "false"))
    assert outcome.metrics is None
    assert finalized == []
    assert workshop.events() == ["RunStarted", "UnitDone", "RunEnded"]


def test_an_output_that_exists_is_not_overwritten(workshop: Any) -> None:
    workshop.rows("a", [{"text": "word"}])
    workshop.run(TOKENIZE)
    before = workshop.visible()
    with pytest.raises(ArtifactError, match="rows"):
        workshop.run(TOKENIZE)
    assert workshop.visible() == before
    assert workshop.sink.events == [], "it has not started"


def test_the_log_of_the_manifest_is_written_beside_the_sink(workshop: Any) -> None:
    """Both are asked for, so both get every event."""
    workshop.rows("a", [{"text": "word"}])
    workshop.run(TOKENIZE + '    metrics: {log: "logs/run.jsonl"}\n')
    logged = [line.split('"')[3] for line in (workshop.out / "logs/run.jsonl").read_text().splitlines()]
    assert logged == [type(each).__name__ for each in workshop.sink.events]


def test_params_of_the_caller_win_over_those_of_the_context(workshop: Any) -> None:
    seen: list[tuple[object, object]] = []

    def runner(job: Job) -> Counters:
        seen.append((job.ctx.params["a"], job.ctx.params["b"]))
        return Counters()

    register_pattern_runner("seeing_params", runner)
    body = "params: {in: {type: path}, a: {type: int}, b: {type: int, max: 9}}\nrun: {type: seeing_params}"
    workshop.run(body, {"b": 3}, params={"a": 1})
    with pytest.raises(ManifestError, match=r"params\.b: expected at most 9"):
        workshop.run(body, {"b": 10}, params={"a": 1})
    assert seen == [(1, 3)]


INTERRUPTED = """
import sys, time
from dataclasses import dataclass
from typing import ClassVar
from treadle import ext
from treadle.processing import run_from_manifest
from treadle.telemetry import RecordingSink

@dataclass(frozen=True)
class Slow:
    side_inputs: ClassVar[tuple[str, ...]] = ()

    def bind(self, side):
        return self.work

    def work(self, batch):
        print("working", flush=True)
        time.sleep(0.05)
        return ext.ProcessResult({"rows": batch}, (), ext.Counters(1, 1))

ext.register_transform("slow", Slow)
manifest, source, out = sys.argv[1:]
sink = RecordingSink()
try:
    run_from_manifest(manifest, ext.RunContext.create("step", out), {"in": source}, sink=sink)
except KeyboardInterrupt:
    print("ended", sink.events[-1].outcome, sink.events[-2].outcome, flush=True)
"""


def test_ctrl_c_cancels_and_gives_everything_back(workshop: Any) -> None:
    """A real interrupt of a real process: all stages end at once, and nothing of the run is left."""
    workshop.rows("a", [{"text": "word"}] * 5_000)  # minutes of work
    manifest = workshop.manifest(
        "params: {in: {type: path}}"
        + TOKENIZE.replace("\n    ", "\n").replace("tokenize", "slow")
        + "parallelism: {batch_rows: 1}\n"
    )
    script = workshop.root / "interrupted.py"
    script.write_text(INTERRUPTED)
    command = [sys.executable, str(script), str(manifest), str(workshop.root / "in"), str(workshop.out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(timeout=30) == 0
    assert said.splitlines()[-1] == "ended cancelled cancelled"
    assert said.count("working") < 100
    assert workshop.visible() == []


def test_a_run_heeds_a_request_to_stop(workshop: Any) -> None:
    """Ctrl-C in an experiment reaches its steps as a request; it must not wait for the last row."""
    workshop.rows("a", [{"text": "one"}])

    begun, asked = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        asked.wait(10)
        workshop.run(TOKENIZE)

    with ThreadClient(1) as client:
        job = client.submit(JobRequest("run", work))
        begun.wait(10)
        job.terminate()
        asked.set()
        with pytest.raises(StoppedError, match="asked to stop; nothing of it is visible"):
            job.result(30)
    assert ended(workshop.sink).outcome == "cancelled"
    assert workshop.visible() == []


def test_a_refused_run_leaves_the_files_that_tell_of_the_good_one(workshop: Any) -> None:
    """Its metrics and its log lie in the same folder, and would be those of a run that did nothing."""
    told = "    metrics: {log: log.jsonl, trace: trace.json, prometheus: {mode: textfile, path: m.prom}}\n"
    workshop.rows("a", [{"text": "word"}])
    workshop.run(TOKENIZE + told)
    before = {name: (workshop.out / name).read_bytes() for name in workshop.visible()}
    assert {"log.jsonl", "trace.json", "m.prom"} <= before.keys()
    with pytest.raises(ArtifactError, match="already there"):
        workshop.run(TOKENIZE + told)
    assert {name: (workshop.out / name).read_bytes() for name in workshop.visible()} == before


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_fails_leaves_no_empty_folder_of_its_own(workshop: Any, there: bool) -> None:
    """One that was there before is nobody's to remove."""
    out = workshop.root / "runs" / "step" / "1"
    if there:
        out.mkdir(parents=True)
    before = set(workshop.root.rglob("*"))
    with pytest.raises(TreadleError, match="no jsonl file"):
        workshop.run(TOKENIZE.replace("path: rows", "path: deep/rows"), out=out)
    workshop.rows("a", ["not json"])
    with pytest.raises(RunError, match="not JSON"):
        workshop.run(TOKENIZE, out=out)
    assert {each for each in workshop.root.rglob("*") if "in" not in each.parts} - before == {
        workshop.root / "manifest.yaml"
    }
    assert out.exists() == there
