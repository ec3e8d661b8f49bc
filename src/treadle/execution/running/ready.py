"""Which step comes next: ready ones in their order, within what the client has."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from treadle.errors import ArgumentError
from treadle.execution.step_spec import StepSpec
from treadle.fray import Budget, ResourceConfig
from treadle.kernel import Frontier

NOTHING_SPECIAL = ResourceConfig()
"""What the job of a step asks for that says nothing. It is left to the client when there is room for it."""


def check_resources(steps: Iterable[StepSpec], total: ResourceConfig) -> None:
    """See that each of the steps can run where there is `total` in all.

    Raises:
        ArgumentError: one asks for more.
    """
    budget = Budget(total)
    seen: set[ResourceConfig] = set()
    for step in steps:
        request = NOTHING_SPECIAL if step.resources is None else step.resources
        if request not in seen and (reason := budget.can_ever(request)) is not None:
            raise ArgumentError(f"step {step.id}: resources: {reason}")
        seen.add(request)


class Ready:
    """The frontier of a run, and the resources that its steps share; `total` is what there is."""

    def __init__(self, total: ResourceConfig) -> None:
        self.frontier: Frontier[str] = Frontier()
        self._budget = Budget(total)
        self._requests: dict[str, ResourceConfig] = {}
        self._again: deque[str] = deque()
        # Taken from the frontier and too large for now, by what they ask for: one look at each kind will do.
        self._held: dict[ResourceConfig, deque[str]] = {}

    def add(
        self, steps: Mapping[str, StepSpec], needs: Mapping[str, Collection[str]], order: Mapping[str, float]
    ) -> None:
        """More steps, what each of them needs that is not done, and how much hangs on each.

        Raises:
            ArgumentError: a step asks for more than there is in all; nothing was added.
        """
        self.check(steps.values())
        asking = {key: step.resources for key, step in steps.items() if step.resources is not None}
        self._requests.update(asking)
        self.frontier.add(needs, order)

    def check(self, steps: Iterable[StepSpec]) -> None:
        """See that each of the steps can run once all is free.

        Raises:
            ArgumentError: one asks for more than there is in all.
        """
        check_resources(steps, self._budget.total)

    def next(self) -> str | None:
        """The next step that may start, with its resources taken; None when there is none at this moment."""
        for request, keys in self._held.items():
            if keys and self._budget.fits(request):
                return self._taken(keys.popleft())
        while (key := self._take()) is not None:
            asked = self._requests.get(key)
            if asked is None or self._budget.fits(asked):
                return self._taken(key)
            self._held.setdefault(asked, deque()).append(key)
        return None

    def again(self, key: str) -> None:
        """A step that was started, and gave back its resources, may start once more."""
        self._again.append(key)

    def give(self, key: str) -> None:
        """The body of a step has ended: its resources are free."""
        if (request := self._requests.get(key)) is not None:
            self._budget.give(request)

    def done(self, key: str) -> None:
        """A step is done, and what needs it comes one step nearer."""
        self._requests.pop(key, None)
        self.frontier.done(key)

    def _take(self) -> str | None:
        return self._again.popleft() if self._again else self.frontier.take()

    def _taken(self, key: str) -> str:
        if (request := self._requests.get(key)) is not None:
            self._budget.take(request)
        return key
