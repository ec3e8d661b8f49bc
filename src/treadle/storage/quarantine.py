"""The rows that could not be used, as a jsonl file that appears with the outputs of the run, or without them
when the run fails because of these rows.

It is written only when there are bad rows. A file that an earlier, uncommitted attempt left is replaced or
removed, so that it always belongs to the same run as the outputs beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from io import BufferedWriter

from treadle.storage.atomic import (
    abandon_file,
    clear_leftovers,
    finish_file,
    local_path,
    remove,
    staging_path,
    sync_folder,
    write_failure,
)
from treadle.storage.dataset import BadRow


class Quarantine:
    """One quarantine file, not visible until `publish`."""

    def __init__(self, path: str) -> None:
        self._target = local_path(path)
        self._staging = staging_path(self._target)
        self._file: BufferedWriter | None = None

    def stage(self) -> None:
        """Clear what a killed writer left. The file itself is opened at the first bad row."""
        with write_failure(self._target):
            clear_leftovers(self._target)

    def add(self, bad: BadRow) -> None:
        """Append a row. Raises RunError with the path."""
        with write_failure(self._target):
            if self._file is None:
                self._target.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._staging.open("xb")
            # A surrogate, as in the name of a file that is not UTF-8, is written as its JSON escape.
            line = json.dumps(asdict(bad), ensure_ascii=False) + "\n"
            self._file.write(line.encode("utf-8", "backslashreplace"))

    def publish(self) -> None:
        """Put the file in place; without bad rows, see that there is none."""
        with write_failure(self._target):
            if self._file is None:
                remove(self._target)
                return
            finish_file(self._file)
            self._file = None
            self._staging.replace(self._target)
            sync_folder(self._target.parent)

    def withdraw(self) -> None:
        """Take back what `publish` put in place."""
        remove(self._target)

    def discard(self) -> None:
        """Remove what is staged."""
        if self._file is not None:
            abandon_file(self._file)
        remove(self._staging)
