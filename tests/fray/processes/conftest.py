from __future__ import annotations

from collections.abc import Iterator

import pytest

from treadle.fray.processes import ProcessClient


@pytest.fixture(scope="module")
def client() -> Iterator[ProcessClient]:
    """A client of two workers, which gives a terminated job half a second; it is in order after each test."""
    with ProcessClient(2, grace=0.5) as made:
        yield made
