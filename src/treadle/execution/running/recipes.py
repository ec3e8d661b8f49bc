"""The recipes of a stream of steps: what came in an earlier part is not gathered again, but must agree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from treadle.errors import GraphError
from treadle.execution.results import KEPT
from treadle.execution.step_spec import StepSpec


class Recipes:
    """Step id -> fingerprint, of the steps with a version; an id without one has the fingerprint in it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, str] = OrderedDict()

    def check(self, steps: Iterable[StepSpec]) -> None:
        """See that no step of these has come before with another recipe, as far as that is remembered.

        Raises:
            GraphError: one has.
        """
        for step in steps:
            if step.version is not None and self._seen.setdefault(step.id, step.hash_id) != step.hash_id:
                raise GraphError(
                    f"step {step.id} is there twice, with different recipes; "
                    "give one of them another version or another name"
                )
        while len(self._seen) > KEPT:
            self._seen.popitem(last=False)
