"""The rows that could not be used, as a jsonl file that appears with the outputs of the run, or without them
when the run fails because of these rows.

Each unit writes its own part; they are joined in the order of units. The file is there only when there are
bad rows. One that an earlier, uncommitted attempt left is replaced or removed, so that it always belongs to
the same run as the outputs beside it.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treadle.storage.atomic import (
    abandon_file,
    finish_file,
    local_path,
    remove,
    sync_folder,
    write_failure,
)
from treadle.storage.dataset import BadRow
from treadle.storage.file_lock import clear_dead


class QuarantinePart:
    """An open file of bad rows."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self.rows = 0

    def add(self, bad: BadRow) -> None:
        """Append a row."""
        # A surrogate, as in the name of a file that is not UTF-8, is written as its JSON escape.
        line = json.dumps(_document(bad), ensure_ascii=False) + "\n"
        self._file.write(line.encode("utf-8", "backslashreplace"))
        self.rows += 1

    def close(self) -> None:
        """Finish the file and sync it."""
        finish_file(self._file)

    def abandon(self) -> None:
        """Let go of the file."""
        abandon_file(self._file)


def _document(bad: BadRow) -> dict[str, Any]:
    try:
        text, coded = bad.raw.decode("utf-8"), None
    except UnicodeDecodeError:
        text, coded = None, base64.b64encode(bad.raw).decode()
    return {
        "source": bad.source,
        "line": bad.line,
        "offset": bad.offset,
        "kind": bad.kind,
        "reason": bad.reason,
        "raw": text,
        "raw_base64": coded,
        "raw_bytes": len(bad.raw),
    }


class Quarantine:
    """The place of a quarantine file; nothing is visible there until `publish`."""

    def __init__(self, path: str) -> None:
        self._target = local_path(path)

    def prepare(self) -> None:
        """Clear what a killed writer left."""
        with write_failure(self._target):
            self._target.parent.mkdir(parents=True, exist_ok=True)
            clear_dead(self._target)

    def publish(self, parts: Sequence[Path]) -> None:
        """Join the parts and put the file in place; without parts, see that there is none."""
        with write_failure(self._target):
            if not parts:
                remove(self._target)
                return
            staged = parts[0].with_name(f"joined-{secrets.token_hex(8)}")  # in a folder that is ours
            with staged.open("xb") as file:
                for each in parts:
                    with each.open("rb") as part:
                        shutil.copyfileobj(part, file)
                finish_file(file)
            staged.replace(self._target)
            sync_folder(self._target.parent)

    def withdraw(self) -> None:
        """Take back what `publish` put in place."""
        remove(self._target)
