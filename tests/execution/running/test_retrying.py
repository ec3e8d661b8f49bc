"""Retries and timeouts at their limits."""

import math
from pathlib import Path

import pytest

from treadle import Retry, run, step
from treadle.errors import ArgumentError


@step
def number(n: int) -> int:
    return n


def test_a_very_long_timeout_is_a_timeout(tmp_path: Path) -> None:
    """`timeout=1e300` says "practically none". It broke the loop of the run with an OverflowError."""
    handle = number(1).with_options(timeout=1e300)
    assert run(handle, prefix=tmp_path)[handle.id] == 1


def test_very_many_attempts_are_made(tmp_path: Path) -> None:
    """2.0 ** 1024 is no float: the delay before attempt 1,026 broke the loop of the run with an
    OverflowError.
    """

    @step(name="stubborn")
    def stubborn() -> int:
        _TRIES.append(1)
        if len(_TRIES) < 1_100:
            raise ValueError("again")
        return len(_TRIES)

    _TRIES.clear()
    handle = stubborn().with_options(retry=Retry(attempts=2_000, delay=0.0))
    assert run(handle, prefix=tmp_path)[handle.id] == 1_100


_TRIES: list[int] = []


@pytest.mark.parametrize("on", [[ValueError], "ValueError", int, None, (ValueError, "x")])
def test_what_is_no_type_of_error_is_refused_by_retry(on: object) -> None:
    """It is looked at only when the step has failed, perhaps after hours, and breaks the whole run then."""
    with pytest.raises(ArgumentError, match="on"):
        Retry(on=on)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"delay": "1"},
        {"delay": math.nan},
        {"delay": 10**400},
        {"factor": math.inf},
        {"factor": 0.5},
        {"max_delay": math.inf},
        {"jitter": 2},
        {"jitter": True},
    ],
)
def test_a_number_that_no_clock_can_wait_for_is_refused_by_retry(options: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        Retry(**options)  # type: ignore[arg-type]


def test_one_type_of_error_needs_no_tuple() -> None:
    assert Retry(on=ValueError).on is ValueError


def test_delays_grow_to_the_longest() -> None:
    retry = Retry(delay=1, factor=2, max_delay=60, jitter=0)
    assert [retry.delay_before(each, 0.5) for each in (2, 3, 4, 2_000)] == [1, 2, 4, 60]
    assert Retry(delay=0.0, factor=2.0).delay_before(2_000, 0.5) == 0
