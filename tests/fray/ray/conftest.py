"""One cluster on this machine for the tests of a module: to start one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="the Ray backend is an extra")

from treadle.fray.ray import RayClient

STORE = 80 << 20
"""Bytes; the smallest object store that Ray takes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These come first: a process has one connection to Ray, and others keep theirs to the end."""
    items.sort(key=lambda item: Path(__file__).parent not in item.path.parents)


@pytest.fixture(scope="module")
def spill_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("spilled"))


@pytest.fixture(scope="module")
def client(spill_dir: str) -> Iterator[RayClient]:
    with RayClient(max_workers=2, object_store_bytes=STORE, spill_dir=spill_dir) as made:
        yield made
