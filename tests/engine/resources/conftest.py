"""What tests of prefixes share."""

from collections.abc import Iterator

import pytest

from tests.engine.resources.prefix_bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.runner.check_integrity()
