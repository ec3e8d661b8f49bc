"""How the batches of a map get to the lanes and their results back.

Where jobs share memory they are passed as they are. Else the function is packed once and known by its
digest: a worker keeps the last ones that it has opened. A large one is not sent with every batch; a worker
that turns out not to have it gets it then. The units of a batch are packed together, and so are its results.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

from treadle.errors import NotSendableError
from treadle.fray.mapping.batch import Batch, Outcome, Run
from treadle.fray.mapping.shares import in_lane
from treadle.fray.mapping.work_off import Found, work_off
from treadle.fray.parcel import open_outcome, pack_error
from treadle.fray.pickling import pickled

Job = Callable[[], Outcome]
Opened = tuple[list[Any], dict[int, BaseException]]
"""The results of a batch, and its errors by their places."""


class UnitNotSendable(Exception):  # noqa: N818 - a reason, told to the map, which makes an error of it
    """The unit at `place` of the run cannot be packed."""

    def __init__(self, place: int, error: NotSendableError) -> None:
        super().__init__(place, error)
        self.place = place
        self.error = error


class Parcels(Protocol):
    """Makes the job of a batch, and reads what it returned."""

    def pack(self, batch: Batch) -> Job:
        """The batch as a job.

        Raises:
            UnitNotSendable: one of its units cannot be sent.
        """
        ...

    def open(self, outcome: Outcome) -> Opened:
        """What came of the units that the batch has done."""
        ...


@dataclass(frozen=True)
class Shared:
    """Between threads of one process."""

    fn: Callable[[Any], Any]
    share: int | None
    keep_going: bool

    def pack(self, batch: Batch) -> Job:
        """See `Parcels`."""
        return partial(self._carry_out, batch.lane, batch.run)

    def open(self, outcome: Outcome) -> Opened:
        """See `Parcels`."""
        return outcome.payload.results, outcome.payload.errors

    def _carry_out(self, lane: int, run: Run) -> Outcome:
        with in_lane(lane, self.share):
            found = work_off(self.fn, run.values, keep_going=self.keep_going)
        return Outcome(len(found.results), tuple(found.errors), found.seconds, payload=found, ends=found.ends)


_SMALL = 16 << 10
"""Bytes; a function of so many goes with every batch."""


@dataclass(frozen=True)
class Sent:
    """Between processes. `fn` is packed; `name` is that of the map, for messages."""

    name: str
    fn: bytes
    digest: bytes
    share: int | None
    keep_going: bool

    def pack(self, batch: Batch) -> Job:
        """See `Parcels`."""
        fn = self.fn if batch.whole or len(self.fn) <= _SMALL else None
        units = self._packed(batch.run)
        return partial(_carry_out, self.digest, fn, units, batch.lane, self.share, self.keep_going)

    def open(self, outcome: Outcome) -> Opened:
        """See `Parcels`."""
        results, errors = outcome.payload
        return pickle.loads(results), {place: _opened(error) for place, error in errors.items()}  # noqa: S301

    def _packed(self, run: Run) -> bytes:
        try:
            return pickled(run.values, f"a unit of {self.name!r}")
        except NotSendableError:
            for place, (number, value) in enumerate(zip(run.numbers, run.values, strict=True)):
                try:
                    pickled(value, f"unit {number} of {self.name!r}")
                except NotSendableError as error:
                    raise UnitNotSendable(place, error) from error
            raise


def parcels_for(
    name: str, fn: Callable[[Any], Any], share: int | None, *, shares_memory: bool, keep_going: bool
) -> Parcels:
    """What packs the batches of a map.

    Raises:
        NotSendableError: the function cannot be sent to another process.
    """
    if shares_memory:
        return Shared(fn, share, keep_going)
    packed = pickled(fn, f"the function of {name!r}")
    return Sent(name, packed, blake2b(packed, digest_size=16).digest(), share, keep_going)


def _carry_out(
    digest: bytes, fn: bytes | None, units: bytes, lane: int, share: int | None, keep_going: bool
) -> Outcome:
    function = _function(digest, fn)
    if function is None:
        return Outcome(0, (), 0.0, strange=True)
    values = pickle.loads(units)  # noqa: S301 - from the process that this one works for
    with in_lane(lane, share):
        found = work_off(function, values, keep_going=keep_going)
    return _packed_outcome(found, len(units))


_KEPT = 16
_functions: OrderedDict[bytes, Callable[[Any], Any]] = OrderedDict()


def _function(digest: bytes, packed: bytes | None) -> Callable[[Any], Any] | None:
    function = _functions.pop(digest, None)
    if function is None and packed is not None:
        function = pickle.loads(packed)  # noqa: S301 - from the process that this one works for
    if function is not None:
        _functions[digest] = function
        if len(_functions) > _KEPT:
            _functions.popitem(last=False)
    return function


def _packed_outcome(found: Found, sent: int) -> Outcome:
    results = _packed_results(found)
    errors = {place: pack_error(error) for place, error in found.errors.items()}
    size = sent + len(results) + sum(map(len, errors.values()))
    return Outcome(
        len(found.results), sorted(errors), found.seconds, (results, errors), size, ends=found.ends
    )


def _packed_results(found: Found) -> bytes:
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
        return pickled(value, "the result of a unit")


def _opened(packed: bytes) -> BaseException:
    try:
        open_outcome(packed)
    except BaseException as error:  # noqa: BLE001 - it is what is asked for
        return error
    raise AssertionError("a packed error raises")
