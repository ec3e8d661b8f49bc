"""What a run of type `generate` writes, and that an answer depends on its row alone."""

from __future__ import annotations

import inspect
import json
from typing import Any, get_args

import pyarrow as pa
import pytest

from tests.processing.generating import BATCH, Asking, words
from treadle.engine.engine import Engine
from treadle.engine.models.build import Kernels, Precision
from treadle.engine.scheduler import Preemption
from treadle.manifest.model import GenerateSection
from treadle.processing import RunContext, run_from_manifest
from treadle.storage import Dataset, read_table
from treadle.telemetry import PhaseEnded, PhaseStarted, RecordingSink, UnitDone

SETTINGS = GenerateSection.model_fields.keys() - {"model"}
COLUMNS = ["id", "answer", "prompt_tokens", "new_tokens", "finish_reason", "seconds"]


@pytest.mark.parametrize("backend", ["parquet", "jsonl", "arrow", "csv"])
def test_answers_are_the_same_in_every_format(asking: Asking, backend: str) -> None:
    asking.write("a", words(5))
    asking.write("b", words(3, start=5))
    asking.run("expected")
    outcome = asking.run(backend=backend)
    assert [each.rows for each in outcome.outputs["answers"].files] == [5, 3]
    as_text = [
        {name: str(value) for name, value in row.items()} if backend == "csv" else row
        for row in asking.answers("expected")
    ]
    assert asking.answers("out", backend) == as_text


def test_the_columns_of_the_output_have_these_types(asking: Asking) -> None:
    """Whoever adds up tokens must not meet another type in another file."""
    asking.write("a", words(2))
    asking.run(keep=["word"])
    table = read_table(Dataset("parquet", str(asking.root / "out" / "answers")))
    assert table.column_names == ["id", "word", *COLUMNS[1:]]
    made = [pa.string(), pa.int32(), pa.int32(), pa.string(), pa.float64()]
    assert table.schema.types == [pa.string(), pa.string(), *made]


def test_a_line_of_jsonl_has_the_row_and_what_it_cost(asking: Asking) -> None:
    asking.write("a", [{"id": 7, "word": "x", "tags": ["a", None]}])
    outcome = asking.run(backend="jsonl", keep=["tags", "word"])
    [file] = outcome.outputs["answers"].files
    row = json.loads((asking.root / "out" / "answers" / file.name).read_text())
    assert list(row) == ["id", "tags", "word", *COLUMNS[1:]]
    assert (row["id"], row["tags"], row["word"]) == (7, ["a", None], "x")
    tokenizer = Engine.load(str(asking.model), kernels="torch").tokenizer
    assert row["prompt_tokens"] == len(tokenizer.encode("x and then"))
    assert 0 < row["new_tokens"] <= 8
    assert row["seconds"] > 0


def test_a_column_to_keep_may_have_nulls_but_has_to_be_there(asking: Asking) -> None:
    asking.write("a", [{"id": 1, "word": "x", "kept": None}, {"id": 2, "word": "y", "kept": 2}])
    asking.write("b", [{"id": 3, "word": "z"}])
    outcome = asking.run(keep=["kept"], errors={"on_bad_row": "skip"})
    assert [row["kept"] for row in asking.answers()] == [None, 2]
    assert "expected a column 'kept'" in outcome.first_reasons[0]


def test_the_sums_of_the_run_are_those_of_its_rows(asking: Asking) -> None:
    """Tokens in, tokens out, and the time of the engine: from these follow cost and pace."""
    asking.write("a", words(5))
    asking.write("b", words(6))
    outcome = asking.run()
    rows = read_table(Dataset("parquet", str(asking.root / "out" / "answers"))).to_pylist()
    sums = dict(outcome.counters.extra)
    assert sums["prompt_tokens"] == sum(row["prompt_tokens"] for row in rows)
    assert sums["new_tokens"] == sum(row["new_tokens"] for row in rows)
    milliseconds = 1000 * sum(row["seconds"] for row in rows)
    assert sums["engine_milliseconds"] == pytest.approx(milliseconds, abs=4)  # rounded for each batch
    units = [each.counters.extra for each in outcome.units]
    assert {name: sum(each[name] for each in units) for name in sums} == sums
    assert sums["engine_milliseconds"] / 1000 < outcome.seconds


def test_the_units_are_told_as_a_phase(asking: Asking) -> None:
    """A bar on the terminal, and the metrics of progress, count them."""
    asking.write("a", words(2))
    asking.write("b", words(2))
    sink = RecordingSink()
    run_from_manifest(asking.manifest(), RunContext.create("step", asking.root / "out"), sink=sink)
    told = [each for each in sink.events if isinstance(each, PhaseStarted | UnitDone | PhaseEnded)]
    assert [type(each).__name__ for each in told] == ["PhaseStarted", "UnitDone", "UnitDone", "PhaseEnded"]
    assert {each.phase for each in told} == {"main"}
    assert isinstance(told[0], PhaseStarted)
    done = sum(each.bytes for each in told if isinstance(each, UnitDone))
    assert (told[0].units, told[0].bytes) == (2, done)


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 1},
        {"batch": 9, "token_budget": 9},
        {"cache_tokens": 64, "prefix_cache": False},
        {"preemption": "recompute", "cache_tokens": 80},
        {"preemption": "offload", "host_tokens": 64, "cache_tokens": 80},
        {"parallelism": {"batch_rows": 1}},
    ],
    ids=str,
)
def test_what_is_drawn_for_a_row_depends_on_the_seed_and_its_id_alone(
    asking: Asking, change: dict[str, Any]
) -> None:
    """Not on how rows are batched, on what runs beside them, or on where they stand."""
    path = asking.write("a", words(12))
    asking.run("expected")
    path.unlink()
    asking.write("a", words(5, start=7))
    asking.write("b", words(7))
    asking.run(**change)
    assert asking.answers() == [*asking.answers("expected")[7:], *asking.answers("expected")[:7]]


def test_rows_with_one_prompt_get_draws_of_their_own(asking: Asking) -> None:
    """So ten rows are ten samples; the same id draws the same, and another seed something else."""
    rows = [{"id": number, "word": "x"} for number in [*range(10), 0]]
    asking.write("a", rows)
    asking.run("one")
    asking.run("other", runtime={"seed": 1})
    one, other = ([row["answer"] for row in asking.answers(out)] for out in ("one", "other"))
    assert len({*one[:10]}) > 5
    assert one[10] == one[0]
    assert one != other


def test_without_a_temperature_the_seed_and_the_id_play_no_part(asking: Asking) -> None:
    asking.write("a", [{"id": number, "word": "x"} for number in range(BATCH + 1)])
    outcome = asking.run(temperature=0, runtime={"seed": 3})
    assert len({row["answer"] for row in asking.answers()}) == 1
    assert outcome.counters.rows_out == BATCH + 1


@pytest.mark.parametrize(
    ("key", "of_engine"), [("precision", Precision), ("kernels", Kernels), ("preemption", Preemption)]
)
def test_the_manifest_knows_the_choices_that_the_engine_has(key: str, of_engine: object) -> None:
    """They are written down twice, for a manifest is checked without the engine."""
    assert get_args(GenerateSection.model_fields[key].annotation) == get_args(of_engine)


@pytest.mark.parametrize("key", sorted(inspect.signature(Engine.load).parameters.keys() & SETTINGS))
def test_the_defaults_are_those_of_the_engine(key: str) -> None:
    default = inspect.signature(Engine.load).parameters[key].default
    assert GenerateSection.model_fields[key].default == default
