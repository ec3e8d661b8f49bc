"""Opening is not for everything that has a path."""

from __future__ import annotations

from pathlib import Path


def check_regular(path: Path) -> None:
    """Nothing where nothing is: whoever opens it says so.

    Raises:
        OSError: it is a pipe, which would be waited for, a device or a folder.
    """
    if path.exists() and not path.is_file():
        raise OSError("it is no file")
