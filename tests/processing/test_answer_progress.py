"""A run of type `generate` tells its rows as they are answered, and no log is filled with that."""

from __future__ import annotations

from collections.abc import Sequence

from tests.processing.generating import Asking, words
from treadle.engine import Completion
from treadle.engine.requests import FinishReason
from treadle.processing import RunContext, run_from_manifest
from treadle.processing.answer_progress import AnswerProgress
from treadle.telemetry import RecordingSink, RowsAnswered


def completion(reason: FinishReason = "stop") -> Completion:
    return Completion("x", "text", (1, 2, 3), 5, reason, seconds=0.5)


def told(moments: Sequence[float], reason: FinishReason = "stop") -> list[int]:
    """The rows of each event, when an answer comes at each of these moments and the interval is a second."""
    sink = RecordingSink()
    progress = AnswerProgress(sink, "run", 1.0, iter(moments).__next__)
    for _ in moments:
        progress.take(completion(reason))
    progress.end()
    return [each.rows for each in sink.events if isinstance(each, RowsAnswered)]


def test_rows_are_told_with_the_first_then_once_an_interval_and_at_the_end() -> None:
    assert told([10.0, 10.1, 10.9, 11.0, 11.5, 12.5, 12.6]) == [1, 4, 6, 7]


def test_what_is_told_already_is_not_told_again_at_the_end() -> None:
    assert told([0.0]) == [1]
    assert told([]) == []


def test_a_request_that_failed_is_no_answer() -> None:
    assert told([0.0, 5.0], "error") == []


def test_tokens_and_the_time_of_the_engine_are_added_up() -> None:
    sink = RecordingSink()
    progress = AnswerProgress(sink, "run", 0.0, lambda: 0.0)
    for _ in range(2):
        progress.take(completion())
    assert sink.events == [RowsAnswered("run", 1, 3, 0.5), RowsAnswered("run", 2, 6, 1.0)]


def test_the_last_that_a_run_tells_are_its_sums(asking: Asking) -> None:
    """So that the log of a short run tells them too."""
    asking.write("a", words(5))
    sink = RecordingSink()
    ctx = RunContext.create("step", asking.root / "out")
    outcome = run_from_manifest(asking.manifest(), ctx, sink=sink)
    last = [each for each in sink.events if isinstance(each, RowsAnswered)][-1]
    assert (last.run_id, last.rows) == (ctx.run_id, 5)
    assert last.new_tokens == outcome.counters.extra["new_tokens"]
