"""What was done may be deleted while a run goes on: a step must not start on nothing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from treadle.artifacts import RecordHead, open_store
from treadle.execution.step_spec import StepSpec

_FRESH = 1.0
_KEPT = 10_000


@dataclass(slots=True)
class _Seen:
    step: StepSpec
    head: RecordHead
    when: float


class Presence:
    """The files of the done steps of a run, each looked at once a second at most: edges are many."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def saw(self, step: StepSpec, head: RecordHead) -> None:
        """The step is done, and its files are there now."""
        if not head.files:
            return
        self._seen[step.id] = _Seen(step, head, time.monotonic())
        if len(self._seen) > _KEPT:
            self._seen.popitem(last=False)

    def forget(self, keys: Iterable[str]) -> None:
        """Others have built some of these steps anew: what was seen of them does not hold any more."""
        for key in keys:
            self._seen.pop(key, None)

    def gone(self, keys: Iterable[str]) -> str | None:
        """The output path of one of these steps that was done and has lost files."""
        seen = (self._seen[key] for key in keys if key in self._seen)
        return next((each.step.output_path for each in seen if not _there(each)), None)


def _there(seen: _Seen) -> bool:
    now = time.monotonic()
    if now - seen.when < _FRESH:
        return True
    seen.when = now
    return open_store(str(seen.step.output_path_prefix)).files_stand(seen.step.output_path, seen.head)
