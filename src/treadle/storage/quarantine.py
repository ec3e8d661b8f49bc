"""The rows that could not be used, as a jsonl file that appears with the outputs of the run, or without them
when the run fails because of these rows.

Each unit writes its own part; they are joined in the order of units. The file is there only when there are
bad rows. One that an earlier, uncommitted attempt left is replaced or removed, so that it always belongs to
the same run as the outputs beside it.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from treadle.storage.atomic import (
    abandon_file,
    finish_file,
    is_remote,
    local_path,
    remove,
    sync_folder,
    write_failure,
)
from treadle.storage.conditional import ConditionalObject
from treadle.storage.dataset import BadRow
from treadle.storage.file_lock import LiveFolder, clear_dead, locked
from treadle.storage.reach import path_at, reach
from treadle.storage.target_local import link_or_copy


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
    """The place of a quarantine file, local or an object; nothing is visible there until `publish`.

    What was there before is set aside until `discard`, so that a run that loses its outputs to another one,
    which published there meanwhile, does not take that one's rows away with its own.
    """

    def __init__(self, path: str) -> None:
        self._place = _ObjectPlace(path) if is_remote(path) else _LocalPlace(path)

    def prepare(self) -> None:
        """Clear what a killed writer left, and see that a file can be put there.

        Raises RunError, ArgumentError or ArtifactError when none can.
        """
        self._place.prepare()

    def publish(self, parts: Sequence[Path]) -> None:
        """Join the parts and put the file in place; without parts, see that there is none."""
        self._place.publish(parts)

    def withdraw(self) -> None:
        """Put back what was there before `publish`, unless another run has put something there since."""
        self._place.withdraw()

    def discard(self) -> None:
        """Remove what was set aside: from now on nothing can be withdrawn."""
        self._place.discard()


class _LocalPlace:
    def __init__(self, path: str) -> None:
        self._target = local_path(path)
        self._live = LiveFolder(self._target)
        self._before = self._live.path / "before"
        self._mine: os.stat_result | None = None

    def prepare(self) -> None:
        with write_failure(self._target):
            self._target.parent.mkdir(parents=True, exist_ok=True)
            clear_dead(self._target)

    def publish(self, parts: Sequence[Path]) -> None:
        if not parts and not self._target.exists():
            return
        with write_failure(self._target):
            self._live.claim()
            self._live.path.mkdir()
            joined = self._live.path / "joined"
            if parts:
                _join(parts, joined)
            with self._locked():
                self._replace(joined)
            sync_folder(self._target.parent)

    def _replace(self, joined: Path) -> None:
        if self._target.exists():
            link_or_copy(self._target, self._before)
        if joined.exists():
            joined.replace(self._target)
            self._mine = self._target.stat()
        else:
            remove(self._target)

    def withdraw(self) -> None:
        with write_failure(self._target), self._locked():
            if self._is_as_published():
                if self._before.exists():
                    self._before.replace(self._target)
                else:
                    remove(self._target)

    def discard(self) -> None:
        remove(self._live.path)
        self._live.release()

    def _is_as_published(self) -> bool:
        if not self._target.exists():
            return self._mine is None
        return self._mine is not None and os.path.samestat(self._mine, self._target.stat())

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._target.with_name(f".{self._target.name}.lock"))


class _ObjectPlace:
    def __init__(self, url: str) -> None:
        self._url = url
        self._object = ConditionalObject(url)
        self._before = f"{url}.before-{secrets.token_hex(4)}"
        self._is_set_aside = False
        self._mine: str | None = None

    def prepare(self) -> None:
        self._object.check()

    def publish(self, parts: Sequence[Path]) -> None:
        if self._key() is not None:
            self._is_set_aside = True
            self._copy(self._url, self._before)
        if not parts:
            self._object.remove_always()
            return
        joined = parts[0].with_name(f"joined-{secrets.token_hex(8)}")  # in a folder that is ours
        with write_failure(joined):
            _join(parts, joined)
        reach(self._url).ask(lambda fs: fs.put_file(str(joined), path_at(fs, self._url)), "upload", self._url)
        self._mine = self._key()
        remove(joined)

    def withdraw(self) -> None:
        if self._key() != self._mine:
            return
        if self._is_set_aside:
            self._copy(self._before, self._url)
        else:
            self._object.remove_always()

    def discard(self) -> None:
        if self._is_set_aside:
            self._is_set_aside = False
            ConditionalObject(self._before).remove_always()

    def _key(self) -> str | None:
        """What changes when the object is replaced; None when there is none."""

        def look(fs: Any) -> str | None:
            path = path_at(fs, self._url)
            return str(fs.ukey(path)) if fs.exists(path) else None

        return reach(self._url).ask(look, "look at", self._url)

    def _copy(self, source: str, target: str) -> None:
        reach(source).ask(lambda fs: fs.copy(path_at(fs, source), path_at(fs, target)), "copy", source)


def _join(parts: Sequence[Path], joined: Path) -> None:
    with joined.open("xb") as file:
        for each in parts:
            with each.open("rb") as part:
                shutil.copyfileobj(part, file)
        finish_file(file)
