"""What can never run at a place is refused when it is handed over, not kept waiting for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from treadle.errors import ArgumentError
from treadle.fray.budget import Budget
from treadle.fray.resources import ResourceConfig

_REMEMBERED = 1024


class Admission:
    """Compares requests with what there is in all, which is asked for when it is needed.

    `fitting` are requests that are known to fit.
    """

    def __init__(self, total: Callable[[], ResourceConfig], fitting: Iterable[ResourceConfig] = ()) -> None:
        self._total = total
        self._fitting = set(fitting)
        self._last: ResourceConfig | None = None

    def check(self, what: str, request: ResourceConfig) -> None:
        """See that the request can be met once all is free; `what` is what messages call it.

        Raises:
            ArgumentError: it never can; names what there is.
        """
        if request is self._last or request in self._fitting:
            self._last = request  # to hash one takes longer than all else here
            return
        reason = Budget(self._total()).can_ever(request)
        if reason is not None:
            raise ArgumentError(f"{what} can never run here: {reason}")
        if len(self._fitting) < _REMEMBERED:
            self._fitting.add(request)
