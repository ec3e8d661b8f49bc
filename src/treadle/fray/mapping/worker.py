"""What happens to a batch where it runs: the function is called with one unit after the other.

In another process the function and the units come packed, and the results go back so. A worker keeps the last
functions that it has opened, known by their digests.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from treadle.errors import NotSendableError
from treadle.fray.mapping.batch import Outcome
from treadle.fray.mapping.pace import LIMIT_S
from treadle.fray.mapping.shares import in_lane
from treadle.fray.parcel import pack_error
from treadle.fray.pickling import FOR_RESULTS, pickled
from treadle.fray.running_job import stop_requested

Function = Callable[[Any], Any]

_LOOK_S = 0.001
_KEPT = 16


@dataclass
class Results:
    """Results, with None for units that raised, and those errors by their place in the batch."""

    results: list[Any] = field(default_factory=list)
    errors: dict[int, BaseException] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ends(self) -> bool:
        """Whether one of them is no `Exception`, which is never taken for a result."""
        return any(not isinstance(each, Exception) for each in self.errors.values())


def call_with_each(fn: Function, units: Sequence[Any], *, keep_going: bool) -> Results:
    """Call `fn` with the units until all are done, one raises, time is up, or the job is asked to stop.

    With `keep_going` a unit that raises is one like the others. What is no `Exception` ends the batch anyhow;
    when the job was asked to stop it ends the job.
    """
    found = Results()
    results, began = found.results, perf_counter()
    look = began + _LOOK_S
    for unit in units:
        try:
            results.append(fn(unit))
        except BaseException as error:  # noqa: BLE001 - raised in its place by the one who asked
            if _ends(found, error, keep_going):
                break
        if (now := perf_counter()) > look:
            look = now + _LOOK_S
            if now > began + LIMIT_S or stop_requested():
                break
    found.seconds = perf_counter() - began
    return found


def _ends(found: Results, error: BaseException, keep_going: bool) -> bool:
    ordinary = isinstance(error, Exception)
    if not ordinary and stop_requested():
        raise error
    found.errors[len(found.results)] = error
    found.results.append(None)
    return not (keep_going and ordinary)


def run_here(fn: Function, units: Sequence[Any], lane: int, share: int | None, keep_going: bool) -> Outcome:
    """The job of a batch in the process of the map."""
    with in_lane(lane, share):
        found = call_with_each(fn, units, keep_going=keep_going)
    return Outcome(len(found.results), tuple(found.errors), found.seconds, payload=found, ends=found.ends)


def run_packed(
    digest: bytes, fn: bytes | None, units: bytes, lane: int, share: int | None, keep_going: bool
) -> Outcome:
    """The job of a batch in another process; `fn` is None where the worker should have it already."""
    function = _function(digest, fn)
    if function is None:
        return Outcome(0, (), 0.0, function_missing=True)
    values = pickle.loads(units)  # noqa: S301 - from the process that this one works for
    with in_lane(lane, share):
        found = call_with_each(function, values, keep_going=keep_going)
    return _packed_outcome(found, len(units))


_functions: OrderedDict[bytes, Function] = OrderedDict()


def _function(digest: bytes, packed: bytes | None) -> Function | None:
    function = _functions.pop(digest, None)
    if function is None and packed is not None:
        function = pickle.loads(packed)  # noqa: S301 - from the process that this one works for
    if function is not None:
        _functions[digest] = function
        if len(_functions) > _KEPT:
            _functions.popitem(last=False)
    return function


def _packed_outcome(found: Results, sent: int) -> Outcome:
    results = _packed_results(found)
    errors = {place: pack_error(error) for place, error in found.errors.items()}
    size = sent + len(results) + sum(map(len, errors.values()))
    return Outcome(
        len(found.results), sorted(errors), found.seconds, (results, errors), size, ends=found.ends
    )


def _packed_results(found: Results) -> bytes:
    """All together; where that does not go, those at fault are errors of their units."""
    try:
        return _dumps(found.results)
    except NotSendableError:
        for place, result in enumerate(found.results):
            try:
                _dumps(result)
            except NotSendableError as error:
                found.errors[place] = error
                found.results[place] = None
        return _dumps(found.results)


def _dumps(value: Any) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - what it cannot do the other often can, slowly
        return pickled(value, "the result of a unit", advice=FOR_RESULTS)
