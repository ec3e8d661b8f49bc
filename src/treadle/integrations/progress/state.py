"""What the events of a run say about where it stands; nothing about how that looks.

Events come from one thread, and the foot of the display is drawn by another, so a lock guards what both use.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from treadle.execution.blame import describe
from treadle.execution.report import RunPlanned, StepEnded, StepRetrying, StepStarted, StepWaiting
from treadle.kernel.outcome import Cached, Done, Failed, Outcome, Skipped
from treadle.storage.ledger import Owner

_SHOWN = 5
_LONGEST_REASON = 300


class Doing(Enum):
    """What a step is at that has begun and not ended."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "to retry"


class Word(Enum):
    """How a step ended, as people say it."""

    DONE = "done"
    ELSEWHERE = "done elsewhere"
    CACHED = "cached"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


_WORDS: Mapping[type[Outcome], Word] = {
    Done: Word.DONE,
    Cached: Word.CACHED,
    Failed: Word.FAILED,
    Skipped: Word.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Active:
    """A step under way since `since` on the clock; `of` is the owner that it waits for."""

    id: str
    name: str
    since: float
    attempt: int = 1
    doing: Doing = Doing.RUNNING
    of: str = ""
    label: str = ""

    @property
    def called(self) -> str:
        """The id, and what tells it from others of that name."""
        return called(self.id, self.label)


@dataclass(frozen=True, slots=True)
class End:
    """How a step ended, and why where that is worth a word."""

    id: str
    name: str
    word: Word
    seconds: float
    why: str = ""
    label: str = ""

    @property
    def called(self) -> str:
        """The id, and what tells it from others of that name."""
        return called(self.id, self.label)


@dataclass(frozen=True, slots=True)
class View:
    """A moment of the run.

    `critical` are the steps on a longest path that have not ended, `expected` the usual seconds of active
    ones, `left` the seconds to go, if known.
    """

    total: int
    counts: Counter[Word]
    active: tuple[Active, ...]
    critical: frozenset[str]
    expected: Mapping[str, float]
    left: float | None


class RunState:
    """Takes in events; `max_concurrent` bodies run at once, `clock` gives seconds."""

    def __init__(self, max_concurrent: int, clock: Callable[[], float]) -> None:
        self.total = 0
        self.counts: Counter[Word] = Counter()
        self._lock = threading.Lock()
        self._slots = max_concurrent
        self._clock = clock
        self._active: dict[str, Active] = {}
        self._expected: dict[str, float] = {}
        self._work = 0.0
        self._paths: list[dict[str, None]] = []
        self._labels: dict[str, str] = {}

    @property
    def ended(self) -> int:
        """How many steps have ended."""
        return self.counts.total()

    def final(self, counts: Mapping[type[Outcome], int], cancelled: int) -> Counter[Word]:
        """How the steps ended, by the counts of the run: Ctrl-C may have torn an event in here."""
        found = Counter({_WORDS[kind]: count for kind, count in counts.items()})
        found[Word.FAILED] -= cancelled
        found[Word.CANCELLED] = cancelled
        elsewhere = min(self.counts[Word.ELSEWHERE], found[Word.CACHED])
        found[Word.CACHED] -= elsewhere
        found[Word.ELSEWHERE] = elsewhere
        return found

    def planned(self, event: RunPlanned) -> None:
        """More steps are known."""
        with self._lock:
            self.total += event.total
            self._slots = event.at_once or self._slots
            self._expected.update(event.expected)
            self._labels.update(event.labels)
            self._work += sum(event.expected.values())
            if event.critical_path:
                self._paths.append(dict.fromkeys(event.critical_path))

    def started(self, event: StepStarted) -> None:
        """A step begins an attempt."""
        with self._lock:
            self._active[event.id] = self._begun(event.id, event.name, event.attempt)

    def waiting(self, event: StepWaiting) -> bool:
        """Another owner has the step; whether that was not known yet."""
        of = owner_of(event.owner)
        with self._lock:
            known = self._active.get(event.id) or self._begun(event.id, event.name)
            self._active[event.id] = replace(known, doing=Doing.WAITING, of=of)
        return known.of != of

    def retrying(self, event: StepRetrying) -> None:
        """The step has failed, and will begin again."""
        with self._lock:
            paused = self._begun(event.id, event.name, event.attempt)
            self._active[event.id] = replace(paused, since=paused.since + event.delay, doing=Doing.PAUSED)

    def ends(self, event: StepEnded) -> End:
        """A step is over."""
        with self._lock:
            active = self._active.pop(event.id, None)
            self._work -= self._expected.pop(event.id, 0.0)
            for path in self._paths:
                path.pop(event.id, None)
            self._paths = [path for path in self._paths if path]
            end = self._end(event, active)
            self.counts[end.word] += 1
        return end

    def called(self, step_id: str) -> str:
        """The id of a step that has not ended, or has failed, and what tells it from others of its name."""
        return called(step_id, self._labels.get(step_id, ""))

    def view(self) -> View:
        """How the run stands now."""
        with self._lock:
            critical = frozenset(key for path in self._paths for key in path)
            active = tuple(self._active.values())
            expected = {each.id: self._expected[each.id] for each in active if each.id in self._expected}
            return View(self.total, self.counts.copy(), active, critical, expected, self._left())

    def seconds_left(self) -> float | None:
        """At least so long, by the times of former builds: the longest path, or all work on all slots."""
        with self._lock:
            return self._left()

    def _left(self) -> float | None:
        if not self._expected:
            return None
        now = self._clock()
        # Somebody is at work on those that wait, too.
        at_work = [each for each in self._active.values() if each.doing is not Doing.PAUSED]
        past = {each.id: min(now - each.since, self._expected.get(each.id, 0.0)) for each in at_work}
        paths = (
            sum(self._expected.get(key, 0.0) - past.get(key, 0.0) for key in path) for path in self._paths
        )
        return max(0.0, (self._work - sum(past.values())) / self._slots, *paths)

    def _end(self, event: StepEnded, active: Active | None) -> End:
        outcome = event.outcome
        word = Word.CANCELLED if event.cancelled else _WORDS[type(outcome)]
        why = self._why(outcome)
        if isinstance(outcome, Cached) and active is not None:  # it was to run here, and another was quicker
            word, why = Word.ELSEWHERE, f"by {active.of}" if active.of else "by another run"
        elif active is not None and active.attempt > 1:
            why = ", ".join(filter(None, (f"attempt {active.attempt}", why)))
        # Of a failed one it is told once more, with those that are skipped because of it.
        told = self._labels.get(event.id, "")
        if word is not Word.FAILED:
            self._labels.pop(event.id, None)
        return End(event.id, event.name, word, event.seconds, why, told)

    def _begun(self, step_id: str, name: str, attempt: int = 1) -> Active:
        return Active(step_id, name, self._clock(), attempt, label=self._labels.get(step_id, ""))

    def _why(self, outcome: Outcome) -> str:
        match outcome:
            case Failed(error):
                return reason_of(error)
            case Skipped(because):
                more = len(because) - _SHOWN
                named = ", ".join(map(self.called, because[:_SHOWN]))
                return f"because of {named}" + (f" and {more:,} more" if more > 0 else "")
        return ""


def called(step_id: str, told: str) -> str:
    """The id, and what tells the step from others of its name."""
    return f"{step_id} ({told})" if told else step_id


def owner_of(owner: Owner) -> str:
    """The owner in few words."""
    return f"process {owner.pid} on {owner.host}"


def reason_of(error: BaseException) -> str:
    """The first line of what an error says, with its type."""
    first, _, rest = describe(error).partition("\n")
    return first[:_LONGEST_REASON] + ("…" if rest or len(first) > _LONGEST_REASON else "")
