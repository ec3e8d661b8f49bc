"""Stores on an object store that can fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from uuid import uuid4

import fsspec
import pytest

from tests.chaos.proxy import Proxy
from treadle.artifacts import remote_workplace
from treadle.storage.reach import forget_reaches


@pytest.fixture
def proxy(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Stands between the clients of this test, and of the processes it starts, and the store."""
    made = Proxy(os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    _connect_anew()
    yield made
    made.close()
    monkeypatch.undo()
    _connect_anew()


@pytest.fixture
def patience(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Ride outages out for so many seconds from now on."""

    def be_patient(seconds: float) -> None:
        monkeypatch.setenv("TREADLE_OUTAGE_SECONDS", str(seconds))
        forget_reaches()

    return be_patient


@pytest.fixture
def answer_within(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Wait for an answer for so many seconds from now on."""

    def hurry(seconds: float) -> None:
        monkeypatch.setenv("TREADLE_ANSWER_SECONDS", str(seconds))
        forget_reaches()

    return hurry


@pytest.fixture
def bucket(s3: str) -> str:
    """A fresh prefix."""
    return f"{s3}/{uuid4().hex}"


def _connect_anew() -> None:
    forget_reaches()
    remote_workplace._users.cache_clear()
    fsspec.get_filesystem_class("s3").clear_instance_cache()
