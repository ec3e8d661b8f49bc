"""Small objects under one fsspec URL: made exclusively, read, listed, removed. Nothing is cached."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import fsspec

from treadle.errors import LedgerError, MissingExtraError

T = TypeVar("T")

_TRIES = 3
_S3 = ("s3://", "s3a://")
_EXISTS = frozenset({"PreconditionFailed", "412"})
_UNDER_WAY = "ConditionalRequestConflict"  # S3: so is another request on the same object
# In memory, fsspec looks whether a file exists and makes it in two steps.
_ONE_AT_A_TIME = threading.Lock()


class Bucket:
    """The objects below `url`, by paths relative to it. What the storage raises becomes a LedgerError."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._open: tuple[Any, str] | None = None

    def create(self, path: str, content: bytes) -> bool:
        """Make an object, whole or not at all; False when there is one that is not this one."""
        made = self._tried(path, lambda fs, whole: _made(fs, whole, content))
        # After a lost answer the storage refuses a second try; the content tells whose object it is.
        return made or self.read(path) == content

    def write(self, path: str, content: bytes) -> None:
        """Make or replace an object, whole or not at all."""
        self._tried(path, lambda fs, whole: _write(fs, whole, content))

    def read(self, path: str) -> bytes | None:
        """What is in the object; None when there is none."""
        return self._tried(path, _cat)

    def find(self, folder: str) -> list[str]:
        """The path of every object below a folder, relative to it."""
        return self._tried(folder, _find)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""
        for path in paths:
            self._tried(path, _remove)

    def reset(self) -> None:
        """In a forked child: the connections are the parent's."""
        self._open = None

    def _tried(self, path: str, act: Callable[[Any, str], T]) -> T:
        """What `act` gives for the file system and the whole path of an object in it."""
        try:
            if self._open is None:
                self._open = _opened(self.url)
            fs, root = self._open
            return act(fs, f"{root}/{path}")
        except Exception as error:  # storages raise what they like
            if isinstance(error, ImportError) and self.url.startswith(_S3):
                raise MissingExtraError("s3fs", "s3", f"a store at {self.url}") from error
            where = f"{self.url.rstrip('/')}/{path}"
            raise LedgerError(
                f"{where}: cannot use the ledger of the store: {type(error).__name__}: {error}; "
                "see that the storage can be reached and that this user may write there, then run again"
            ) from error


def _opened(url: str) -> tuple[Any, str]:
    fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
    return fs, root.rstrip("/")


def _protocol(fs: Any) -> str:
    first = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    return str(first)


def _made(fs: Any, path: str, content: bytes, tries: int = _TRIES) -> bool:
    """Whether the object was made; False when there was one."""
    make = {"file": _link, "memory": _create_in_memory}.get(_protocol(fs), _create)
    try:
        make(fs, path, content)
    except FileExistsError:
        return False
    except OSError as error:
        code = _code(error)
        if code in _EXISTS:
            return False
        if code == _UNDER_WAY and tries > 1:
            return _made(fs, path, content, tries - 1)
        raise
    return True


def _code(error: OSError) -> str:
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _create(fs: Any, path: str, content: bytes) -> None:
    # Without `with`, which would publish half of it when the write fails.
    file = fs.open(path, "xb")
    file.write(content)
    file.close()


def _create_in_memory(fs: Any, path: str, content: bytes) -> None:
    with _ONE_AT_A_TIME:
        fs.pipe_file(path, content, mode="create")


def _link(_fs: Any, path: str, content: bytes) -> None:
    """Exclusive, and never seen half written: a file made with O_EXCL is there before its content."""
    staged = _staged(path, content)
    try:
        os.link(staged, path)
    finally:
        staged.unlink()


def _write(fs: Any, path: str, content: bytes) -> None:
    if _protocol(fs) == "file":
        _staged(path, content).replace(path)
    else:
        fs.pipe_file(path, content)


def _staged(path: str, content: bytes) -> Path:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(f".staging-{secrets.token_hex(8)}")
    try:
        staged.write_bytes(content)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return staged


def _cat(fs: Any, path: str) -> bytes | None:
    try:
        return bytes(fs.cat_file(path))
    except FileNotFoundError:
        return None


def _find(fs: Any, folder: str) -> list[str]:
    start = folder.rstrip("/")
    return [each[len(start) + 1 :] for each in fs.find(start)]


def _remove(fs: Any, path: str) -> None:
    try:
        fs.rm_file(path)
    except FileNotFoundError:
        return
