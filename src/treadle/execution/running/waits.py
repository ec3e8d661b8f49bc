"""Which bodies wait for which steps, told in the ledgers, where the bodies run in several processes.

While the body of A waits for step B, which another process has, A has a lease on the place "A waits for B" of
B's store. A process that dies loses it as it loses any lease. Whoever waits looks at all of them each time
that it looks for its step; of a circle, the body whose place has the least digest gives way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from treadle.artifacts import Store, open_store
from treadle.artifacts.waits import read_wait, wait_place
from treadle.execution.running.inside import circle_error, inside, reached
from treadle.execution.step_spec import StepSpec
from treadle.storage.ledger import Claim
from treadle.storage.ledger.process import is_gone


class Waits:
    """What the bodies around one run wait for; `run` is its id."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._told: dict[tuple[str, str], tuple[Store, Claim]] = {}

    def begin(self, bodies: Iterable[inside], step: StepSpec) -> None:
        """The bodies wait for the owner of the step; to be called at each look.

        Raises:
            StepError: it waits for one of them, perhaps by way of others, and that one is to give way.
        """
        around = list(bodies)
        for body in around:
            self._tell(body, step)
        edges = _edges({str(step.output_path_prefix), *(body.prefix for body in around)})
        for body in around:
            circle = _circle(edges, _digest(body.output_path), _digest(step.output_path))
            if circle and _digest(body.output_path) == min(circle):
                raise circle_error(step, body.output_path)

    def end(self, step: StepSpec) -> None:
        """Nobody waits for the step any more."""
        for key in [key for key in self._told if key[1] == step.output_path]:
            store, claim = self._told.pop(key)
            store.ledger.release(claim)

    def _tell(self, body: inside, step: StepSpec) -> None:
        key = body.output_path, step.output_path
        if key not in self._told:
            store = open_store(str(step.output_path_prefix))
            claim = store.ledger.claim(wait_place(*map(_digest, key)), _nothing, self._run)
            if isinstance(claim, Claim):
                self._told[key] = store, claim


def _edges(prefixes: Iterable[str]) -> dict[str, set[str]]:
    """Digest of the place of a body -> of the steps that it waits for, of all processes that live."""
    edges: dict[str, set[str]] = {}
    for prefix in prefixes:
        for place, owner in open_store(prefix).ledger.leases():
            wait = read_wait(place)
            if wait is not None and not is_gone(owner):
                edges.setdefault(wait[0], set()).add(wait[1])
    return edges


def _circle(edges: Mapping[str, set[str]], body: str, step: str) -> set[str]:
    """All between the step and the body, both included; nothing when the one does not lead to the other."""
    back: dict[str, set[str]] = {}
    for waiting, waited_for in edges.items():
        for each in waited_for:
            back.setdefault(each, set()).add(waiting)
    return reached(edges, step) & reached(back, body)


def _digest(output_path: str) -> str:
    return hashlib.sha256(output_path.encode()).hexdigest()[:16]


def _nothing() -> None:
    """The lease was lost: others see a circle later, if there is one."""
