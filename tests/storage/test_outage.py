"""How an outage is ridden out, with a clock that the test moves; and what counts as one."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from treadle.errors import ArgumentError
from treadle.storage.outage import Outage
from treadle.storage.passing import is_passing
from treadle.storage.seconds import seconds_setting


class Scene:
    """A storage that is out of reach until `back`; each request takes a second."""

    def __init__(self, patience: float = 30.0) -> None:
        self.now, self.back, self.asked = 100.0, 0.0, 0
        self.pauses: list[float] = []
        self.outage = Outage(patience, lambda: self.now, self.pause)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def request(self) -> str:
        self.asked += 1
        self.now += 1.0
        if self.now < self.back:
            raise ConnectionResetError("gone")
        return "answer"

    def ask(self, **options: bool) -> str:
        return self.outage.ride_out(self.request, **options)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_short_outage_is_ridden_out_with_pauses_that_grow(scene: Scene) -> None:
    scene.back = 120.0
    assert scene.ask() == "answer"
    assert scene.pauses[0] < scene.pauses[3] <= 2.0
    assert scene.outage.lasted() == 0.0


def test_a_long_one_ends_with_its_error_and_then_each_request_is_tried_once(scene: Scene) -> None:
    """A run does many things: each must not wait anew."""
    scene.back = 1000.0
    with pytest.raises(ConnectionResetError):
        scene.ask()
    assert 30 <= scene.outage.lasted() < 36
    asked = scene.asked
    with pytest.raises(ConnectionResetError):
        scene.ask()
    assert scene.asked == asked + 1
    scene.now = 1000.0
    assert scene.ask() == "answer"
    scene.back = 1020.0
    assert scene.ask() == "answer", "the next outage has its own time"


def test_whoever_is_in_a_hurry_tries_once(scene: Scene) -> None:
    scene.back = 110.0
    with pytest.raises(ConnectionResetError):
        scene.ask(patient=False)
    assert (scene.asked, scene.pauses) == (1, [])


def test_one_request_that_always_fails_ends_while_others_succeed(scene: Scene) -> None:
    """Each success ends the outage; the time of the request itself still runs."""

    def broken() -> str:
        scene.outage.ride_out(lambda: "well")
        scene.now += 1.0
        raise TimeoutError

    with pytest.raises(TimeoutError):
        scene.outage.ride_out(broken)


def test_the_watch_stands_still_while_nothing_can_be_seen(scene: Scene) -> None:
    """Whoever waits for the sign of life of an owner must not count the time in which none could arrive."""
    assert scene.outage.watch_time() == 100.0
    scene.now, scene.back = 105.0, 1000.0
    with pytest.raises(ConnectionResetError):
        scene.ask(patient=False)
    scene.now = 999.0
    assert scene.outage.watch_time() == 105.0
    assert scene.ask() == "answer"
    scene.now += 7.0
    assert scene.outage.watch_time() == 112.0


def test_what_the_storage_refuses_is_not_tried_again(scene: Scene) -> None:
    def refuse() -> None:
        scene.asked += 1
        raise PermissionError

    with pytest.raises(PermissionError):
        scene.outage.ride_out(refuse)
    assert scene.asked == 1


class Answer(Exception):
    def __init__(self, code: str, status: int) -> None:
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class Status(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


def caused(by: Exception) -> OSError:
    error = OSError(errno.EIO, "translated")
    error.__cause__ = by
    return error


def of_a_client() -> Iterator[Any]:
    import aiohttp
    from botocore import exceptions, parsers  # type: ignore[import-untyped]

    yield exceptions.EndpointConnectionError(endpoint_url="x")
    yield exceptions.ReadTimeoutError(endpoint_url="x")
    yield parsers.ResponseParserError("torn")
    yield aiohttp.ClientPayloadError("torn")
    yield aiohttp.ServerDisconnectedError()


PASSING: list[Callable[[], Exception]] = [
    ConnectionRefusedError,
    TimeoutError,
    socket.gaierror,
    lambda: OSError(errno.ESTALE, "stale"),
    lambda: Answer("SlowDown", 503),
    lambda: Answer("ConditionalRequestConflict", 409),
    lambda: Answer("Unheard", 502),
    lambda: Answer("Throttling", 400),
    lambda: Status(429),
    lambda: caused(Answer("InternalError", 500)),
]
LASTING: list[Callable[[], Exception]] = [
    FileNotFoundError,
    PermissionError,
    ValueError,
    lambda: OSError(errno.ENOSPC, "full"),
    lambda: Answer("NoSuchBucket", 404),
    lambda: Answer("NotImplemented", 501),
    lambda: Answer("PreconditionFailed", 412),
    lambda: Status(403),
    lambda: caused(Answer("AccessDenied", 403)),
]


@pytest.mark.parametrize("make", PASSING)
def test_what_passes(make: Callable[[], Exception]) -> None:
    assert is_passing(make())


@pytest.mark.parametrize("make", LASTING)
def test_what_lasts(make: Callable[[], Exception]) -> None:
    assert not is_passing(make())


def test_what_the_client_of_s3_raises_passes() -> None:
    assert all(map(is_passing, of_a_client()))


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "soon"])
def test_a_setting_that_is_no_time_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_OUTAGE_SECONDS", text)
    with pytest.raises(ArgumentError, match=f"TREADLE_OUTAGE_SECONDS: expected a number .*{text!r}"):
        seconds_setting("outage_seconds", 30.0, least=0.0)


def test_zero_means_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_OUTAGE_SECONDS", "0")
    assert seconds_setting("outage_seconds", 30.0, least=0.0) == 0.0
