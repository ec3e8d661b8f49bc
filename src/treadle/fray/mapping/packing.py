"""How the batches of a map get to the workers and their results back.

Where jobs share memory they are passed as they are. Else the function is packed once for the map, and the
units of a batch are packed together. A large function is not sent with every batch: a worker that turns out
not to have it gets it with the next one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

from treadle.errors import NotSendableError
from treadle.fray.mapping.batch import Batch, Outcome, Units
from treadle.fray.mapping.worker import Function, run_here, run_packed
from treadle.fray.parcel import open_outcome
from treadle.fray.pickling import pickled

Job = Callable[[], Outcome]
Opened = tuple[list[Any], dict[int, BaseException]]
"""The results of a batch, and its errors by their places."""

_SMALL = 16 << 10
"""Bytes; a function of so many goes with every batch."""


class UnitNotSendable(Exception):  # noqa: N818 - a reason, told to the map, which makes an error of it
    """The unit at `place` of the batch cannot be packed."""

    def __init__(self, place: int, error: NotSendableError) -> None:
        super().__init__(place, error)
        self.place = place
        self.error = error


class Packing(Protocol):
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
class InMemory:
    """Between threads of one process; `share` is the budget of what is nested in a unit."""

    fn: Function
    share: int | None
    keep_going: bool

    def pack(self, batch: Batch) -> Job:
        """See `Packing`."""
        return partial(run_here, self.fn, batch.units.values, batch.lane, self.share, self.keep_going)

    def open(self, outcome: Outcome) -> Opened:
        """See `Packing`."""
        return outcome.payload.results, outcome.payload.errors


@dataclass(frozen=True)
class Pickled:
    """Between processes. `fn` is pickled, and known by its `digest`. Messages have the `name` of the map."""

    name: str
    fn: bytes
    digest: bytes
    share: int | None
    keep_going: bool

    def pack(self, batch: Batch) -> Job:
        """See `Packing`."""
        fn = self.fn if batch.with_function or len(self.fn) <= _SMALL else None
        units = self._packed(batch.units)
        return partial(run_packed, self.digest, fn, units, batch.lane, self.share, self.keep_going)

    def open(self, outcome: Outcome) -> Opened:
        """See `Packing`."""
        results, errors = outcome.payload
        return pickle.loads(results), {place: _opened(error) for place, error in errors.items()}  # noqa: S301

    def _packed(self, units: Units) -> bytes:
        try:
            return pickled(units.values, f"a unit of {self.name!r}")
        except NotSendableError:
            for place, (number, value) in enumerate(zip(units.numbers, units.values, strict=True)):
                try:
                    pickled(value, f"unit {number} of {self.name!r}")
                except NotSendableError as error:
                    raise UnitNotSendable(place, error) from error
            raise


def packing_for(
    name: str, fn: Function, share: int | None, *, shares_memory: bool, keep_going: bool
) -> Packing:
    """How the batches of a map are packed.

    Raises:
        NotSendableError: the function cannot be sent to another process.
    """
    if shares_memory:
        return InMemory(fn, share, keep_going)
    packed = pickled(fn, f"the function of {name!r}")
    return Pickled(name, packed, blake2b(packed, digest_size=16).digest(), share, keep_going)


def _opened(packed: bytes) -> BaseException:
    try:
        open_outcome(packed)
    except BaseException as error:  # noqa: BLE001 - it is what is asked for
        return error
    raise AssertionError("a packed error raises")
