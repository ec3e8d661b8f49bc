"""The rows that could not be used, as a jsonl file that appears with the outputs of the run, or without them
when the run fails because of these rows.

Each unit writes its own part; they are joined in the order of units. The file is there only when there are
bad rows. One that an earlier, uncommitted attempt left is replaced or removed, so that it always belongs to
the same run as the outputs beside it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from treadle.storage.atomic import abandon_file, finish_file, is_remote
from treadle.storage.dataset import BadRow
from treadle.storage.quarantine_places import LocalQuarantine, ObjectQuarantine


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


class Quarantine(Protocol):
    """The place of a quarantine file; nothing is visible there until `publish`.

    What was there before is set aside until `discard`, so that a run that loses its outputs to another one,
    which published there meanwhile, does not take that one's rows away with its own.
    """

    def prepare(self) -> None:
        """See that a file can be put there; on this machine, also clear what killed writers left.

        Raises RunError, ArgumentError or ArtifactError when none can.
        """

    def publish(self, parts: Sequence[Path]) -> None:
        """Join the parts and put the file in place; without parts, see that there is none."""

    def withdraw(self) -> None:
        """Put back what was there before `publish`, unless another run has put something there since."""

    def discard(self) -> None:
        """Remove what was set aside: from now on nothing can be withdrawn."""


def quarantine_for(path: str) -> Quarantine:
    """The quarantine at a local path, or at the URL of an object. Nothing is touched yet."""
    return ObjectQuarantine(path) if is_remote(path) else LocalQuarantine(path)
