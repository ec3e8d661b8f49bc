"""What the templates need beyond the data: numbers, colours, curves and the drawing of the graph, all
worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treadle.integrations.report.charts import GrowthChart, Tick, area_path, crest_path, growth_chart
from treadle.integrations.report.colours import assign_colours
from treadle.integrations.report.dag import Drawing, draw_graph
from treadle.integrations.report.data import FIGURES, ReportData, StepRow, Topic
from treadle.integrations.report.scatter import Place, topic_places

PERIOD_TICKS = 8

PLACES = {
    "map": ("the map", "map"),
    "topics": ("the topics", "topics"),
    "names": ("the names of the topics", "topics"),
    "over_time": ("topics over time", "over-time"),
    "growth": ("the growth of the vocabulary", "vocabulary"),
}
"""Figure -> what the page calls it, and the id of its section."""


@dataclass(frozen=True)
class TopicView:
    """A topic as the page shows it.

    `number` counts from 1, the largest. `place` is None when no point shows the topic. `shares` is its part
    of the passages of each period, `peak` the index of the highest; `hill` and `crest` draw them on the
    common scale, `spark` on one of its own.
    """

    number: int
    colour: int
    topic: Topic
    place: Place | None
    shares: tuple[float, ...]
    peak: int
    hill: str
    crest: str
    spark: str


@dataclass(frozen=True)
class Feed:
    """Something on the page that shows numbers of a step: what it is called, and the id of its place."""

    title: str
    anchor: str


@dataclass(frozen=True)
class StepView:
    """A step with the id of its row among the sources, its share of all seconds (0 to 1), and what it
    feeds."""

    anchor: str
    step: StepRow
    share: float
    feeds: tuple[Feed, ...]


@dataclass(frozen=True)
class View:
    """Everything worked out. `steps` are in the order of the data."""

    data: ReportData
    topics: tuple[TopicView, ...]
    by_peak: tuple[TopicView, ...]
    highest_share: float
    period_ticks: tuple[Tick, ...]
    growth: GrowthChart
    graph: Drawing
    steps: Mapping[str, StepView]
    seconds: float

    @property
    def slowest(self) -> tuple[StepView, ...]:
        """The steps, the longest first."""
        return tuple(sorted(self.steps.values(), key=lambda each: -each.step.seconds))


def build_view(data: ReportData) -> View:
    """The view of `data`. Raises GraphError when the steps do not form a graph without cycles."""
    topics = _topic_views(data)
    return View(
        data=data,
        topics=topics,
        by_peak=tuple(sorted(topics, key=lambda each: _centre_of_mass(each.shares))),
        highest_share=max((max(each.shares, default=0) for each in topics), default=0),
        period_ticks=_period_ticks(data.periods),
        growth=growth_chart(data.growth, data.heaps),
        graph=draw_graph({step.id: step.deps for step in data.steps}),
        steps={each.step.id: each for each in _step_views(data)},
        seconds=sum(step.seconds for step in data.steps),
    )


def _topic_views(data: ReportData) -> tuple[TopicView, ...]:
    ranked = sorted(data.topics, key=lambda topic: (-topic.passages, topic.id))
    places = topic_places(data.points)
    colours = assign_colours({topic.id: places.get(topic.id, (0.5, 0.5)) for topic in ranked})
    shares = {topic.id: _shares(topic.by_period, data.period_totals) for topic in ranked}
    top = max((max(each, default=0) for each in shares.values()), default=0)
    return tuple(
        TopicView(
            number=number,
            colour=colours[topic.id],
            topic=topic,
            place=places.get(topic.id),
            shares=shares[topic.id],
            peak=max(range(len(data.periods)), key=shares[topic.id].__getitem__, default=0),
            hill=area_path(shares[topic.id], top),
            crest=crest_path(shares[topic.id], top),
            spark=area_path(shares[topic.id], max(shares[topic.id], default=0)),
        )
        for number, topic in enumerate(ranked, start=1)
    )


def _shares(counts: Sequence[int], totals: Sequence[int]) -> tuple[float, ...]:
    return tuple(count / total if total else 0.0 for count, total in zip(counts, totals, strict=True))


def _centre_of_mass(shares: Sequence[float]) -> float:
    return sum(i * share for i, share in enumerate(shares)) / (sum(shares) or 1)


def _period_ticks(periods: Sequence[str]) -> tuple[Tick, ...]:
    every = max(1, -(-len(periods) // PERIOD_TICKS))
    last = max(1, len(periods) - 1)
    return tuple(Tick(100 * i / last, periods[i]) for i in range(0, len(periods), every))


def _step_views(data: ReportData) -> tuple[StepView, ...]:
    total = sum(step.seconds for step in data.steps) or 1
    return tuple(
        StepView(f"step-{number}", step, step.seconds / total, _feeds(data, step.id))
        for number, step in enumerate(data.steps, start=1)
    )


def _feeds(data: ReportData, step: str) -> tuple[Feed, ...]:
    facts = [Feed(fact.label, "facts") for fact in data.facts if fact.source == step]
    figures = [Feed(*PLACES[figure]) for figure in FIGURES if data.sources.get(figure) == step]
    return (*facts, *figures)
