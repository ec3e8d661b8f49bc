"""Where a quarantine file can be: on this machine, or an object of a storage."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from treadle.storage.atomic import finish_file, local_path, remove, sync_folder, write_failure
from treadle.storage.conditional import ConditionalObject
from treadle.storage.file_lock import LiveFolder, clear_dead, locked
from treadle.storage.reach import path_at, reach
from treadle.storage.target_local import link_or_copy


class LocalQuarantine:
    """A file of this machine. See `Quarantine`."""

    def __init__(self, path: str) -> None:
        self._target = local_path(path)
        self._live = LiveFolder(self._target)
        self._before = self._live.path / "before"
        self._mine: os.stat_result | None = None

    def prepare(self) -> None:
        """Make the folder; clear what killed writers left."""
        with write_failure(self._target):
            self._target.parent.mkdir(parents=True, exist_ok=True)
            clear_dead(self._target)

    def publish(self, parts: Sequence[Path]) -> None:
        """Replace the file under a lock, or remove it."""
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
        """Put back what was there, if nobody has replaced ours."""
        with write_failure(self._target), self._locked():
            if self._is_as_published():
                if self._before.exists():
                    self._before.replace(self._target)
                else:
                    remove(self._target)

    def discard(self) -> None:
        """Remove what was set aside."""
        remove(self._live.path)
        self._live.release()

    def _is_as_published(self) -> bool:
        if not self._target.exists():
            return self._mine is None
        return self._mine is not None and os.path.samestat(self._mine, self._target.stat())

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._target.with_name(f".{self._target.name}.lock"))


class ObjectQuarantine:
    """An object of a storage. See `Quarantine`.

    A killed writer leaves what it set aside: nobody can tell from elsewhere whether it lives.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._object = ConditionalObject(url)
        self._before = f"{url}.before-{secrets.token_hex(4)}"
        self._is_set_aside = False
        self._mine: str | None = None

    def prepare(self) -> None:
        """See that the storage keeps two writers apart."""
        self._object.check()

    def publish(self, parts: Sequence[Path]) -> None:
        """Copy what is there, then replace it, or remove it."""
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
        """Put back what was there, if nobody has replaced ours."""
        if self._key() != self._mine:
            return
        if self._is_set_aside:
            self._copy(self._before, self._url)
        else:
            self._object.remove_always()

    def discard(self) -> None:
        """Remove what was set aside."""
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
