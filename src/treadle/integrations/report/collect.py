"""From the artifacts of a topic map to what its page shows. Every number is read from an artifact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from treadle import __version__
from treadle.artifacts import missing_record, open_store
from treadle.domain.growth import heaps_fit
from treadle.execution.results import Results, StepResult
from treadle.experiment.tables import load
from treadle.integrations.report.data import Example, Fact, GrowthPoint, Point, ReportData, StepRow, Topic
from treadle.kernel import Cached

EXAMPLES_SHOWN = 2


def collect(steps: Mapping[str, str], results: Results, *, corpus_note: str) -> ReportData:
    """What the page of a finished topic map shows; `steps` gives the step id of each part of the recipe.

    Raises:
        ArtifactError: an artifact or its record is gone.
    """
    tables = _Tables(steps, results)
    growth = _growth(tables)
    topics, periods, totals = _topics(tables)
    rows = tuple(_step_row(step, results.outcomes[step]) for step in steps.values())
    return ReportData(
        title="What presidents talk about",
        lead=_lead(tables, topics),
        facts=_facts(tables, growth, topics, rows),
        topics=topics,
        periods=periods,
        period_totals=totals,
        points=_points(tables),
        growth=growth,
        heaps=heaps_fit([each.tokens for each in growth], [each.types for each in growth]),
        steps=rows,
        corpus_note=corpus_note,
        made=f"treadle {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        sources={
            "map": steps["projection"],
            "topics": steps["topics"],
            "names": steps["names"],
            "over_time": steps["topics"],
            "growth": steps["growth"],
        },
    )


class _Tables:
    """The tables that the steps wrote, as rows, each read once."""

    def __init__(self, steps: Mapping[str, str], results: Results) -> None:
        self.steps = steps
        self._results = results
        self._read: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def rows(self, step: str, table: str) -> list[dict[str, Any]]:
        if (step, table) not in self._read:
            self._read[step, table] = load(self._results[self.steps[step]], table).to_pylist()
        return self._read[step, table]

    def count(self, step: str, table: str) -> int:
        """How many rows the table has."""
        return load(self._results[self.steps[step]], table).num_rows

    @cached_property
    def passages(self) -> Mapping[str, dict[str, Any]]:
        """The passages by id."""
        return {row["id"]: row for row in self.rows("passages", "rows")}


def _topics(tables: _Tables) -> tuple[tuple[Topic, ...], tuple[str, ...], tuple[int, ...]]:
    """The topics, largest first, the decades, and how many passages each decade has."""
    sizes = Counter(row["cluster"] for row in tables.rows("clusters", "assignments"))
    counts: Counter[tuple[int, int]] = Counter()
    for row in tables.rows("topics", "over_time"):
        counts[row["cluster"], row["start"]] += row["passages"]
    starts = sorted({start for _, start in counts})
    names = {int(row["id"]): _title(row["answer"]) for row in tables.rows("names", "answers")}
    terms = {int(row["id"]): tuple(row["terms"].split(", ")) for row in tables.rows("topics", "topics")}
    topics = tuple(
        Topic(
            id=topic,
            name=names[topic],
            passages=size,
            share=size / sizes.total(),
            terms=terms[topic],
            examples=_examples(tables, topic),
            by_period=tuple(counts[topic, start] for start in starts),
        )
        for topic, size in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    totals = tuple(sum(topic.by_period[at] for topic in topics) for at in range(len(starts)))
    return topics, tuple(f"{start}s" for start in starts), totals


def _title(answer: str) -> str:
    return answer.strip().strip("\"'.:;,*").strip()


def _examples(tables: _Tables, topic: int) -> tuple[Example, ...]:
    passages = tables.passages
    chosen = [row["passage"] for row in tables.rows("topics", "examples") if row["topic"] == topic]
    return tuple(
        Example(passages[each]["text"], passages[each]["speaker"], passages[each]["year"])
        for each in chosen[:EXAMPLES_SHOWN]
    )


def _points(tables: _Tables) -> tuple[Point, ...]:
    passages = tables.passages
    return tuple(
        Point(row["x"], row["y"], row["topic"], row["year"], row["speaker"], passages[row["id"]]["text"])
        for row in tables.rows("projection", "points")
    )


def _growth(tables: _Tables) -> tuple[GrowthPoint, ...]:
    rows = tables.rows("growth", "growth")
    return tuple(GrowthPoint(str(row["year"]), row["tokens"], row["types"], row["hapax"]) for row in rows)


def _step_row(step_id: str, result: StepResult) -> StepRow:
    record = open_store(result.prefix).record(result.output_path)
    if record is None:
        raise missing_record(result.output_path)
    head = record.head
    finished = datetime.fromisoformat(head.started) + timedelta(seconds=head.seconds)
    return StepRow(
        id=step_id,
        name=result.name,
        outcome="cached" if isinstance(result.outcome, Cached) else "ran",
        seconds=head.seconds,
        deps=result.deps,
        output_path=result.output_path,
        fingerprint=head.fingerprint,
        build=head.build,
        finished=f"{finished:%Y-%m-%d %H:%M:%S} UTC",
    )


def _facts(
    tables: _Tables, growth: tuple[GrowthPoint, ...], topics: tuple[Topic, ...], rows: tuple[StepRow, ...]
) -> tuple[Fact, ...]:
    steps = tables.steps
    years = [row["year"] for row in tables.rows("documents", "rows")]
    return (
        Fact("addresses", f"{len(years):,}", steps["documents"]),
        Fact("years", f"{min(years)} to {max(years)}", steps["documents"]),
        Fact("words", f"{growth[-1].tokens:,}", steps["growth"]),
        Fact("different words", f"{growth[-1].types:,}", steps["growth"]),
        Fact("terms with a vector", f"{tables.count('word_vectors', 'vectors'):,}", steps["word_vectors"]),
        Fact("passages", f"{len(tables.passages):,}", steps["passages"]),
        Fact("topics", f"{len(topics)}", steps["clusters"]),
        Fact("seconds of work in all steps", f"{sum(row.seconds for row in rows):,.0f}"),
    )


def _lead(tables: _Tables, topics: tuple[Topic, ...]) -> str:
    documents = tables.rows("documents", "rows")
    years = [row["year"] for row in documents]
    speakers = len({row["speaker"] for row in documents})
    return (
        f"{len(documents)} addresses by {speakers} presidents, {min(years)} to {max(years)}, cut into "
        f"{len(tables.passages):,} passages. Words that keep the same company got vectors that are alike; "
        f"passages that are alike became {len(topics)} topics; a small language model read the words of each "
        f"topic and gave it its name. The largest is “{topics[0].name}”, with {topics[0].share:.0%} of all "
        f"passages."
    )
