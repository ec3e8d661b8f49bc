"""What the tests of this room compare folders by."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def tree() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a folder by its relative path; folders too, by an empty content and a slash."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(each.relative_to(folder)) + "/" * each.is_dir(): b"" if each.is_dir() else each.read_bytes()
            for each in sorted(folder.rglob("*"))
        }

    return read
