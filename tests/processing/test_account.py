"""Bad rows and the account: rows in = out + filtered + rejected, whatever the rows and the batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.domain.result import Counters, ProcessResult, Reject, Transform
from treadle.errors import AccountError, BadRowError, RunError
from treadle.ext import register_transform

TOKENIZE = """
    run: {type: partition}
    inputs: {documents: {backend: jsonl, path: "${params.in}/*.jsonl", columns: [id, text]}}
    transform: {name: tokenize, keep: [id], min_tokens: 2}
    outputs: {rows: {backend: jsonl, path: rows}, registry: {backend: parquet, path: registry}}
    runtime: {metrics_enabled: true}
"""
BAD = ["not json", '{"id": 1, "text": "torn', "[1]", '{"id": 1, "id": 2}']


def test_fail_names_file_and_line(workshop: Any) -> None:
    """The default: a user who said nothing about bad rows must hear of the first one."""
    path = workshop.rows("a", [{"id": 1, "text": "one two"}, "not json", {"id": 3, "text": None}])
    with pytest.raises(BadRowError) as caught:
        workshop.run(TOKENIZE)
    assert (caught.value.source, caught.value.line) == (str(path), 2)
    assert "not JSON" in caught.value.reason


def test_fail_takes_the_reject_of_a_transform_as_seriously(workshop: Any) -> None:
    path = workshop.rows(
        "a", [{"id": 1, "text": "one two"}, {"id": 2, "text": "x y"}, {"id": 3, "text": None}]
    )
    with pytest.raises(BadRowError) as caught:
        workshop.run(TOKENIZE)
    assert (caught.value.source, caught.value.line, caught.value.reason) == (str(path), 3, "text is null")


def test_skip_counts_and_keeps_nothing(workshop: Any) -> None:
    workshop.rows(
        "a", [{"id": 1, "text": "one two"}, "not json", {"id": 3, "text": None}, {"id": 4, "text": "x"}]
    )
    outcome = workshop.run(TOKENIZE + "    errors: {on_bad_row: skip}\n")
    assert outcome.counters == Counters(rows_in=4, rows_out=1, filtered=1, rejected=2)
    assert workshop.quarantined() == []


def test_quarantine_keeps_source_line_reason_and_raw_in_order(workshop: Any) -> None:
    """Enough to find the row, mend it and run again."""
    path = workshop.rows("a", [{"id": 1, "text": None}, "not json", {"id": 3, "text": "one two"}, {"id": 4}])
    workshop.run(TOKENIZE + "    errors: {on_bad_row: quarantine}\n")
    found = workshop.quarantined()
    assert [(each["source"], each["line"]) for each in found] == [(str(path), line) for line in (1, 2, 4)]
    assert [each["reason"].split(":")[0] for each in found] == ["text is null", "not JSON", "column text"]
    assert json.loads(found[0]["raw"]) == {"id": 1, "text": None}
    assert found[1]["raw"] == "not json"


def test_a_file_of_bad_rows_only_is_no_error_of_columns(workshop: Any) -> None:
    """A batch without a good row has no columns; the transform must not be asked about it."""
    workshop.rows("a", ["not json", "nor this"])
    workshop.rows("b", [{"id": 1, "text": "one two"}])
    outcome = workshop.run(TOKENIZE + "    errors: {on_bad_row: skip}\n")
    assert outcome.counters == Counters(rows_in=3, rows_out=1, rejected=2)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("max_bad_rows: 2", "3 of 8 rows read are bad, errors.max_bad_rows allows 2"),
        ("max_bad_fraction: 0.3", "3 of 8 rows read are bad, errors.max_bad_fraction allows 0.3"),
        ("max_bad_rows: 3", None),
        ("max_bad_fraction: 0.375", None),
    ],
)
@pytest.mark.parametrize("mode", ["skip", "quarantine"])
def test_too_many_bad_rows(workshop: Any, mode: str, rule: str, said: str | None) -> None:
    """A limit is the last that is allowed; past it the run fails with numbers and the first reasons.

    The quarantine stays: whoever has to mend the input needs every bad row, not the first few.
    """
    workshop.rows("a", [*[{"id": 1, "text": "one two"}] * 5, *BAD[:3]])
    body = TOKENIZE + f"    errors: {{on_bad_row: {mode}, {rule}}}\n"
    if said is None:
        assert workshop.run(body).counters.rejected == 3
        return
    with pytest.raises(RunError) as caught:
        workshop.run(body)
    assert said in str(caught.value)
    assert "a.jsonl:6: not JSON" in str(caught.value)
    kept = ["step.quarantine.jsonl"] if mode == "quarantine" else []
    assert workshop.visible() == kept
    assert [each["line"] for each in workshop.quarantined()] == ([6, 7, 8] if kept else [])
    assert str(caught.value).endswith(f"all of them are in {workshop.out}/step.quarantine.jsonl") == bool(
        kept
    )


def test_max_bad_rows_stops_early(workshop: Any) -> None:
    """A shard of rubbish must not be read to its end first."""
    workshop.rows("a", ["rubbish"] * 5_000)
    with pytest.raises(RunError, match=r"10 of 10 rows read are bad"):
        workshop.run(
            TOKENIZE + "    errors: {on_bad_row: skip, max_bad_rows: 5}\n    parallelism: {batch_rows: 10}\n"
        )


@dataclass(frozen=True)
class Losing:
    """A transform by a careless author: a row comes out, another is rejected, the rest is forgotten."""

    side_inputs: ClassVar[tuple[str, ...]] = ()

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        return lambda batch: ProcessResult(
            {"rows": batch.slice(0, 1)}, (Reject(1, "no"),), Counters(batch.num_rows, 1, 0, 1)
        )


def test_rows_lost_by_a_transform_are_noticed_where_they_are_lost(workshop: Any) -> None:
    register_transform("losing", Losing)
    workshop.rows("a", [{"id": number, "text": ""} for number in range(5)])
    body = TOKENIZE.replace("{name: tokenize, keep: [id], min_tokens: 2}", "{name: losing}")
    with pytest.raises(
        AccountError, match=r"a.jsonl, lines 1 to 5: 5 rows came in, but 1 out \+ 0 filtered \+ 1"
    ):
        workshop.run(body.replace(", registry: {backend: parquet, path: registry}", ""))


@dataclass(frozen=True)
class Rejecting:
    """A transform that rejects the rows it is told to, whether or not they exist."""

    indices: tuple[int, ...]
    side_inputs: ClassVar[tuple[str, ...]] = ()

    def bind(self, side: Mapping[str, pa.Table]) -> Transform:
        def reject(batch: pa.RecordBatch) -> ProcessResult:
            rejects = tuple(Reject(index, "no") for index in self.indices)
            kept = batch.slice(0, batch.num_rows - len(rejects))
            return ProcessResult({"rows": kept}, rejects, Counters())

        return reject


@pytest.mark.parametrize("indices", ["[0, 0]", "[3]", "[-1]"])
def test_a_reject_must_be_a_row_of_the_batch(workshop: Any, indices: str) -> None:
    """Its line is looked up by the index: a wrong one would blame another row."""
    register_transform("rejecting", Rejecting)
    workshop.rows("a", [{"id": number, "text": ""} for number in range(3)])
    body = TOKENIZE.replace(
        "{name: tokenize, keep: [id], min_tokens: 2}", f"{{name: rejecting, indices: {indices}}}"
    )
    with pytest.raises(
        AccountError, match=r"a.jsonl, lines 1 to 3: rejects must be distinct rows from 0 to 2"
    ):
        workshop.run(body.replace(", registry: {backend: parquet, path: registry}", ""))


FATES = st.sampled_from(["good", "short", "null", "bad"])


def row_of(fate: str, number: int) -> object:
    """A row that must end in this way."""
    return {
        "good": {"id": number, "text": f"word{number} other"},
        "short": {"id": number, "text": "one"},
        "null": {"id": number, "text": None},
        "bad": BAD[number % len(BAD)],
    }[fate]


@given(
    shards=st.lists(st.lists(FATES, max_size=12), min_size=1, max_size=4),
    batch_rows=st.integers(1, 5),
    depth=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counters_add_up_for_any_rows(
    new_workshop: Callable[[], Any], shards: list[list[str]], batch_rows: int, depth: int
) -> None:
    """Outcome, metrics, units, files and quarantine tell the same numbers, however the rows are cut up."""
    workshop = new_workshop()
    for index, fates in enumerate(shards):
        workshop.rows(f"shard-{index}", [row_of(fate, number) for number, fate in enumerate(fates)])
    outcome = workshop.run(
        TOKENIZE
        + "    errors: {on_bad_row: quarantine}\n"
        + f"    parallelism: {{batch_rows: {batch_rows}, queue_depth: {depth}}}\n"
    )
    fates = [fate for shard in shards for fate in shard]
    bad = fates.count("bad") + fates.count("null")
    expected = Counters(len(fates), fates.count("good"), fates.count("short"), bad)
    assert outcome.counters == expected
    assert outcome.counters.balanced
    assert outcome.outputs["rows"].rows == fates.count("good")
    assert len(workshop.quarantined()) == bad
    units = [each.counters for each in workshop.sink.events if type(each).__name__ == "UnitDone"]
    assert [each["rows_in"] for each in units] == [len(shard) for shard in shards]
    assert [each["rejected"] for each in units] == [
        shard.count("bad") + shard.count("null") for shard in shards
    ]
    for name in ("rows_in", "rows_out", "filtered", "rejected"):
        counted = outcome.metrics.counters.get(name, 0)
        assert counted == getattr(expected, name) == sum(each[name] for each in units)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (lambda rows: None, "gave NoneType, expected a ProcessResult"),
        (
            lambda rows: ProcessResult(
                {"rows": rows.slice(1)}, (), Counters(filtered=1, extra={"rows_in": 9})
            ),
            "rename",
        ),
        (lambda rows: ProcessResult({"rows": rows.take([0, 0, 1])}, (), Counters(filtered=-1)), "filtered"),
    ],
)
def test_a_transform_cannot_invent_rows(workshop: Any, result: Any, said: str) -> None:
    """A number below zero makes any sum right, and a further sum under a taken name any event wrong."""

    @dataclass(frozen=True)
    class Inventing:
        side_inputs: ClassVar[tuple[str, ...]] = ()

        def bind(self, side: Mapping[str, pa.Table]) -> Transform:
            return result  # type: ignore[no-any-return]

    name = f"inventing: {said}"
    register_transform(name, Inventing)
    workshop.rows("a", [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}])
    body = TOKENIZE.replace("{name: tokenize, keep: [id], min_tokens: 2}", f"{{name: '{name}'}}")
    with pytest.raises(RunError, match=said):
        workshop.run(body.replace(", registry: {backend: parquet, path: registry}", ""))
    assert workshop.visible() == []
