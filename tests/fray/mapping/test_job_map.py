"""What a map promises, on every backend."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from treadle.errors import (
    ArgumentError,
    NotSendableError,
    ResultTooLargeError,
    UnknownNameError,
    UsageError,
)
from treadle.fray import (
    Client,
    JobRequest,
    ResourceConfig,
    ThreadClient,
    current_client,
    set_current_client,
    stop_requested,
)
from treadle.fray.mapping.job_map import Tick, current_lane, job_map
from treadle.fray.travelling import Travelling

MakeClient = Callable[..., Client]
pytestmark = pytest.mark.timeout(60)

COLOUR: Travelling[str] = Travelling("colour of the tests of job_map")


def test_results_come_in_the_order_of_the_units(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        time.sleep(0.002 if number % 7 == 0 else 0)
        return number * number

    client = client_of(backend, 2)
    assert list(job_map(body, range(300), client=client)) == [each * each for each in range(300)]
    assert list(job_map(body, range(50), client=client, assign="static", lanes=3)) == [
        each * each for each in range(50)
    ]


def test_no_units_no_results(backend: str, client_of: MakeClient) -> None:
    client = client_of(backend, 1)
    assert list(job_map(str, [], client=client)) == []
    assert list(job_map(str, [], client=client, assign="static")) == []


def test_an_error_is_raised_in_its_place_and_names_the_unit(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        if number >= 40:
            raise ValueError(f"no {number}")
        return number

    seen: list[int] = []
    with pytest.raises(ValueError, match="no 40") as caught:
        seen.extend(job_map(body, iter(range(1000)), client=client_of(backend, 2), name="squares"))
    assert seen == list(range(40)) or not seen  # extend keeps what came, or nothing
    assert "unit 40 of squares: 40" in caught.value.__notes__


def test_an_error_of_a_labelled_unit_is_left_as_it_is(backend: str, client_of: MakeClient) -> None:
    """Who names the units tells of them, too."""

    def body(number: int) -> int:
        raise ValueError(f"no {number}")

    with pytest.raises(ValueError, match="no 0") as caught:
        list(job_map(body, range(3), client=client_of(backend, 1), label="the number {}".format))
    assert not any("unit" in note for note in getattr(caught.value, "__notes__", ()))


def test_results_before_an_error_are_given(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        return 1 // (30 - number)

    seen = []
    with pytest.raises(ZeroDivisionError):
        for result in job_map(body, range(1000), client=client_of(backend, 3)):
            seen.append(result)  # noqa: PERF402 - what came before the error is what is asked about
    assert len(seen) == 30


def test_errors_can_be_results(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        if number % 10 == 3:
            raise KeyError(number)
        return number

    results: list[Any] = list(job_map(body, range(100), client=client_of(backend, 2), return_exceptions=True))
    assert [each for each in results if not isinstance(each, KeyError)] == [
        each for each in range(100) if each % 10 != 3
    ]
    assert [str(each) for each in results if isinstance(each, KeyError)] == [
        str(each) for each in range(3, 100, 10)
    ]


def test_an_iterator_that_raises_does_so_after_the_results_before(
    backend: str, client_of: MakeClient
) -> None:
    def units() -> Iterator[int]:
        yield from range(25)
        raise LookupError("the source broke")

    def body(number: int) -> int:
        return -number

    ways: list[Any] = ["pull", "static"]
    for assign in ways:
        seen = []
        with pytest.raises(LookupError, match="the source broke"):
            for result in job_map(body, units(), client=client_of(backend, 2), assign=assign):
                seen.append(result)  # noqa: PERF402 - as above
        assert seen == [-each for each in range(25)]


def test_a_unit_or_a_result_that_cannot_be_sent_is_an_error_of_that_unit(
    remote: str, client_of: MakeClient
) -> None:
    def body(unit: Any) -> Any:
        return threading.Lock() if unit == 5 else unit

    units: list[Any] = [*range(8), threading.Lock(), 9]
    results = list(job_map(body, units, client=client_of(remote, 1), return_exceptions=True))
    assert isinstance(results[5], NotSendableError)
    assert isinstance(results[8], NotSendableError)
    assert "unit 8" in str(results[8])
    assert [results[each] for each in (0, 1, 2, 3, 4, 6, 7, 9)] == [0, 1, 2, 3, 4, 6, 7, 9]


def test_a_function_that_cannot_be_sent_is_refused_at_the_call(remote: str, client_of: MakeClient) -> None:
    lock = threading.Lock()
    with pytest.raises(NotSendableError, match="the function of 'map'"):
        job_map(lambda _: lock, [1], client=client_of(remote, 1))


def test_a_result_too_large_to_be_sent_is_an_error_of_that_unit(remote: str, client_of: MakeClient) -> None:
    def body(number: int) -> bytes:
        return bytes(5_000_000 if number == 30 else 10)

    client = client_of(remote, 1, max_result_bytes=2_000_000)
    results: list[Any] = list(job_map(body, range(40), client=client, return_exceptions=True))
    assert isinstance(results[30], ResultTooLargeError)
    assert [len(each) for each in results if isinstance(each, bytes)] == [10] * 39


def test_a_large_function_reaches_every_worker(remote: str, client_of: MakeClient) -> None:
    large = bytes(200_000)

    def body(number: int) -> int:
        time.sleep(0.005)
        return number + len(large)

    results = job_map(body, range(60), client=client_of(remote, 2))
    assert list(results) == [each + len(large) for each in range(60)]


@pytest.mark.parametrize("assign", ["pull", "static"])
def test_a_lane_runs_one_unit_at_a_time(
    backend: str, client_of: MakeClient, tmp_path: Path, assign: Any
) -> None:
    def body(number: int) -> int:
        mark = tmp_path / f"lane-{current_lane()}"
        mark.touch(exist_ok=False)  # raises when another unit is in this lane
        time.sleep(0.003)
        mark.unlink()
        return current_lane()

    lanes = list(job_map(body, range(60), client=client_of(backend, 3), lanes=2, assign=assign))
    assert set(lanes) <= {0, 1}
    if assign == "static":
        assert lanes == [0, 1] * 30


def test_weights_balance_the_lanes(backend: str, client_of: MakeClient) -> None:
    def body(weight: int) -> int:
        return current_lane()

    lanes = job_map(
        body, [9, 1, 1, 8, 1], client=client_of(backend, 2), assign="static", weigh=float, lanes=2
    )
    assert list(lanes) == [0, 1, 0, 1, 1]


def test_outside_a_unit_there_is_no_lane() -> None:
    with pytest.raises(UsageError, match="lane"):
        current_lane()


def test_the_current_client_is_used_and_travelling_values_go_along(
    backend: str, client_of: MakeClient
) -> None:
    colour = COLOUR

    def body(_: int) -> str:
        return colour.get()

    with set_current_client(client_of(backend, 2)), COLOUR.use("red"):
        results = job_map(body, range(100))
    assert set(results) == {"red"}


def test_ticks_tell_how_far_it_is(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        time.sleep(0.01)
        return 1 // (number - 7)

    ticks: list[Tick] = []
    here = threading.get_ident()

    def tell(tick: Tick) -> None:
        assert threading.get_ident() == here
        ticks.append(tick)

    list(job_map(body, range(60), client=client_of(backend, 2), on_tick=tell, return_exceptions=True))
    last = ticks[-1]
    assert (last.done, last.failed, last.running, last.total, last.lost) == (59, 1, 0, 60, 0)
    assert len(ticks) > 1
    assert [each.done for each in ticks] == sorted(each.done for each in ticks)
    assert last.seconds > 0


def test_a_tick_that_raises_ends_the_map(backend: str, client_of: MakeClient) -> None:
    def body(_: int) -> None:
        time.sleep(0.02)

    def refuse(_: Tick) -> None:
        raise OSError("the terminal is gone")

    client = client_of(backend, 2)
    with pytest.raises(OSError, match="the terminal is gone"):
        list(job_map(body, iter(int, 1), client=client, on_tick=refuse))
    client.shutdown()  # and nothing runs on for ever


def test_a_map_inside_a_job(backend: str, client_of: MakeClient) -> None:
    def job() -> int:
        return sum(job_map(abs, range(-50, 0)))

    assert client_of(backend, 1).submit(JobRequest("outer", job)).result() == 1275


def test_a_map_inside_a_map(backend: str, client_of: MakeClient) -> None:
    def outer(number: int) -> int:
        return sum(job_map(partial(pow, number), [1, 2, 3]))

    client = client_of(backend, 1)
    assert list(job_map(outer, range(6), client=client)) == [n + n**2 + n**3 for n in range(6)]


@pytest.mark.parametrize("way", ["close", "drop", "never begun"])
def test_an_iterator_that_is_given_up_ends_what_runs(
    backend: str, client_of: MakeClient, tmp_path: Path, way: str
) -> None:
    def body(number: int) -> int:
        (tmp_path / f"began-{number}").touch()
        while number > 3 and not stop_requested():
            time.sleep(0.005)
        return number

    client = client_of(backend, 2)
    results: Any = job_map(body, iter(range(10_000)), client=client)
    if way != "never begun":
        assert next(results) == 0
    if way == "close":
        results.close()
    del results
    client.shutdown()  # returns, so nothing runs any more
    assert len(list(tmp_path.iterdir())) < 1000


def test_an_interrupted_consumer_leaves_nothing_running(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        while not stop_requested():
            time.sleep(0.005)
        return number

    def interrupt(_: Tick) -> None:
        raise KeyboardInterrupt

    client = client_of(backend, 2)
    with pytest.raises(KeyboardInterrupt):
        list(job_map(body, range(10), client=client, on_tick=interrupt))
    client.shutdown()


def test_a_slow_consumer_stops_the_production(backend: str, client_of: MakeClient) -> None:
    pulled = 0

    def units() -> Iterator[int]:
        nonlocal pulled
        while True:
            pulled += 1
            yield pulled

    def body(number: int) -> int:
        time.sleep(0.001)
        return number

    results = job_map(body, units(), client=client_of(backend, 2))
    for _ in range(200):
        next(results)
    at_rest = pulled
    time.sleep(0.5)  # time in which far more could be done
    next(results)
    assert pulled <= at_rest + 1000


def test_a_client_that_was_shut_down_is_refused_at_the_call(backend: str, client_of: MakeClient) -> None:
    client = client_of(backend, 1)
    client.shutdown()
    with pytest.raises(ArgumentError, match="shut down"):
        job_map(str, [1], client=client)


def test_a_client_that_is_shut_down_meanwhile_is_an_error(backend: str, client_of: MakeClient) -> None:
    def body(number: int) -> int:
        return number

    client = client_of(backend, 1)
    results = job_map(body, iter(range(100_000)), client=client)
    next(results)
    client.shutdown(wait=False)
    with pytest.raises(ArgumentError, match="shut down"):
        list(results)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget: expected a whole number"),
        ({"lanes": 1.5}, "lanes: expected a whole number"),
        ({"kills": 0}, "kills: expected a whole number"),
        ({"weigh": len}, "weigh"),
        ({"on_tick": 3}, "on_tick: expected a function"),
        ({"resources": ResourceConfig(gpu=99)}, "gpu"),
    ],
)
def test_arguments_are_checked_at_the_call(options: Any, message: str) -> None:
    with ThreadClient(1) as client, pytest.raises(ArgumentError, match=message):
        job_map(str, [1], client=client, **options)


def test_what_is_mapped_is_checked_at_the_call() -> None:
    wrong: Any = 3
    with ThreadClient(1) as client:
        with pytest.raises(ArgumentError, match="fn: expected a function, got 3"):
            job_map(wrong, [1], client=client)
        with pytest.raises(ArgumentError, match="units: expected something to iterate over"):
            job_map(str, wrong, client=client)
        with pytest.raises(UnknownNameError, match="pull"):
            job_map(str, [1], client=client, assign=wrong)


def test_nothing_is_started_once_an_error_is_known() -> None:
    began: list[int] = []
    failed = threading.Event()

    def body(number: int) -> None:
        began.append(number)
        if number == 0:
            failed.set()
            raise ValueError("the first")
        failed.wait(20)

    with ThreadClient(2) as client, pytest.raises(ValueError, match="the first"):
        list(job_map(body, range(1000), client=client))
    assert len(began) < 20


def test_exit_in_a_unit_is_never_a_result() -> None:
    def body(number: int) -> int:
        if number == 3:
            raise SystemExit(9)
        return number

    with ThreadClient(1) as client, pytest.raises(SystemExit):
        list(job_map(body, range(10), client=client, return_exceptions=True))


def test_a_terminated_job_ends_its_map() -> None:
    begun = threading.Event()

    def unit(_: int) -> None:
        begun.set()
        while not stop_requested():
            time.sleep(0.001)

    def job() -> list[None]:
        return list(job_map(unit, range(1_000_000), client=current_client()))

    with ThreadClient(2) as client:
        handle = client.submit(JobRequest("outer", job))
        assert begun.wait(20)
        handle.terminate()
        assert handle.wait(20).value == "stopped"
