"""What is left of the resources of a place while jobs take from them and give back."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from treadle.errors import ArgumentError, UnknownNameError
from treadle.fray.resources import ResourceConfig

# Whole numbers of these add up without drift: ten times 0.1 is 1.
_PARTS = 1_000_000


class Budget:
    """The resources of a place, `total` in all. Not safe for use by several threads.

    Amounts are counted in millionths; what is finer is dropped, but never to nothing.
    """

    def __init__(self, total: ResourceConfig) -> None:
        self.total = total
        self._free = dict(_amounts(total))
        self._taken: Counter[ResourceConfig] = Counter()

    def can_ever(self, request: ResourceConfig) -> str | None:
        """Why the request cannot fit even when all is free, in words; None when it can."""
        for tag in request.tags:
            if tag not in self.total.tags:
                return str(UnknownNameError("tag", tag, self.total.tags))
        asked, there, whole = _stated(request), _stated(self.total), dict(_amounts(self.total))
        for name, amount in _amounts(request):
            if amount > whole[name]:
                return f"{name}: {asked[name]:,} asked for, and there is {there[name]:,} in all"
        return None

    def fits(self, request: ResourceConfig) -> bool:
        """Whether `take` would succeed now."""
        return all(amount <= self._free.get(name, -1) for name, amount in _amounts(request))

    def take(self, request: ResourceConfig) -> None:
        """Take what is asked for, all of it.

        Raises:
            ArgumentError: it does not fit now; nothing was taken.
        """
        if not self.fits(request):
            raise ArgumentError(f"{request} does not fit into what is free now: ask `fits` first")
        self._taken[request] += 1
        for name, amount in _amounts(request):
            self._free[name] -= amount

    def give(self, request: ResourceConfig) -> None:
        """Give back what was taken with the same request.

        Raises:
            ArgumentError: no such request is open; nothing was given back.
        """
        if not self._taken[request]:
            raise ArgumentError(f"{request} is given back, but was not taken or was given back before")
        self._taken[request] -= 1
        if not self._taken[request]:
            del self._taken[request]
        for name, amount in _amounts(request):
            self._free[name] += amount

    def check_integrity(self) -> None:
        """See that what is free and what is taken are all there is.

        Raises:
            AssertionError: they are not; a fault of this class.
        """
        found = Counter(self._free)
        for request, times in self._taken.items():
            for name, amount in _amounts(request):
                found[name] += times * amount
        if found != Counter(dict(_amounts(self.total))) or min(self._free.values()) < 0:
            raise AssertionError(f"free {self._free} and taken {self._taken} are not {self.total}")


def _stated(config: ResourceConfig) -> dict[str, float]:
    """What a config says, under the names that messages use."""
    tags = {f"tag {tag!r}": amount for tag, amount in config.tags.items()}
    return {"cpu": config.cpu, "memory in bytes": config.memory, "gpu": config.gpu, **tags}


@lru_cache(maxsize=1024)
def _amounts(config: ResourceConfig) -> tuple[tuple[str, int], ...]:
    return tuple((name, _parts(amount)) for name, amount in _stated(config).items())


def _parts(amount: float) -> int:
    if isinstance(amount, int):
        return amount * _PARTS
    # 0.07 times a million is 70000.00000000001, and other products fall as much short of a whole number.
    return max(math.floor(amount * _PARTS + 0.001), 1 if amount else 0)
