"""How steps come into a run: all before it begins, or in parts while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

from treadle.execution.drift import describe_drift
from treadle.execution.freshness import OnDrift, Plan, look
from treadle.execution.graph import StepGraph, gather
from treadle.execution.path import critical_path, remaining, weights
from treadle.execution.plan import known_seconds
from treadle.execution.report import Reporter, RunPlanned, StepDrifted
from treadle.execution.running.ends import Ends
from treadle.execution.running.feed import PART, Feed, Part
from treadle.execution.running.journal import Journal
from treadle.execution.running.presence import Presence
from treadle.execution.running.ready import Ready
from treadle.execution.running.recipes import Recipes
from treadle.execution.running.sendable import check_sendable
from treadle.execution.running.unfinished import Unfinished
from treadle.execution.step_spec import StepSpec

_LOOK_AHEAD = 2 * PART


class Intake:
    """Takes steps into a run, whose parts the first arguments are, and tells `report`.

    With a `feed` they come in parts, and what is wrong with one goes to `broke`. `sends` says whether the
    steps are sent to other processes.
    """

    def __init__(
        self,
        units: Unfinished,
        ready: Ready,
        journal: Journal,
        presence: Presence,
        ends: Ends,
        report: Reporter,
        *,
        on_drift: OnDrift,
        at_once: int,
        sends: bool,
        feed: Feed | None,
        broke: Callable[[BaseException], object],
    ) -> None:
        self._units = units
        self._ready = ready
        self._journal = journal
        self._presence = presence
        self._ends = ends
        self._report = report
        self._on_drift = on_drift
        self._at_once = at_once
        self._sends = sends
        self._feed = feed
        self._broke = broke
        self._asked = False
        self._recipes = Recipes()

    @property
    def is_open(self) -> bool:
        """Whether there is more to come."""
        return self._feed is not None

    def ask(self) -> None:
        """Let the next part come, if the run has not enough ahead of it."""
        if self._feed is not None and not self._asked and len(self._ready.frontier) < _LOOK_AHEAD:
            self._asked = True
            self._feed.ask()

    def stop(self) -> None:
        """Nothing new is to start, so nothing more needs to come."""
        if self._feed is not None:
            self._feed.stop()
            self._feed = None

    def take(self, part: Part) -> None:
        """Take in what the feed has delivered."""
        self._asked = False
        if self._feed is None:  # it comes too late
            return
        if isinstance(part, BaseException):
            self._broke(part)
        elif part is None:
            self._feed = None
        else:
            self._look_at(part)

    def admit(self, graph: StepGraph, plan: Plan) -> None:
        """The steps of a graph belong to the run from now on, those to run and those that are done."""
        self._add(graph, plan)
        for key, drift in plan.drifted.items():
            if self._on_drift == "warn":
                step = graph.steps[key]
                self._report(StepDrifted(key, step.name, describe_drift(step, drift)))
        for key in [key for key in plan.done if key not in self._ends]:
            self._ends.cached(graph.steps[key], plan.done[key])
            self._presence.saw(graph.steps[key], plan.done[key])

    def _add(self, graph: StepGraph, plan: Plan) -> None:
        needs = self._units.add(graph, plan)
        names = {key: graph.steps[key].name for key in needs}
        known = known_seconds(graph.steps[key] for key in needs)
        weight = weights(names, known)
        left = remaining(needs, weight)
        self._ready.add({key: graph.steps[key] for key in needs}, needs, left)
        self._journal.begin({str(graph.steps[key].output_path_prefix) for key in needs})
        cached = sum(key not in self._ends for key in plan.done)
        path = critical_path(needs, left) if known else ()
        usual = weight if known else {}
        self._report(RunPlanned(cached, len(needs), usual, path, graph.steps, self._at_once))

    def _look_at(self, part: list[StepSpec]) -> None:
        try:
            known = _Either(self._units, self._ends)
            graph = gather(part, known)
            self._recipes.check(graph.steps.values())
            # What an earlier part had is looked at once more, so that these steps are compared with it.
            before = (key for key in graph.order if key in known)
            graph = replace(graph, targets=(*graph.targets, *before))
            plan = look(graph, frozenset(), self._on_drift, self._units.keys())
            if self._sends:
                check_sendable(graph.steps[key] for key in plan.reasons if key not in self._units)
            self.admit(graph, plan)
        except Exception as error:  # noqa: BLE001 - raised again by the run, when what runs has been stopped
            self._broke(error)
        self.ask()


class _Either:
    """Steps that this run knows: they need not be gathered again."""

    def __init__(self, *containers: Container[str]) -> None:
        self._containers = containers

    def __contains__(self, key: object) -> bool:
        return any(key in each for each in self._containers)
